"""Sets tags on a failed run in MLflow over the tracking server's REST API, if the log shows which run it is."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import urlsplit

from torchtriage.chat.outbound_http import Answer, Outgoing, refuse
from torchtriage.chat.run_tags import PREFIX, host_of, values_of, what_failed
from torchtriage.domain.notice import Notice, NoticeKind, Thread

_RUN, _PAGE = "mlflow_run_id", "mlflow_run_url"  # names of facts of the log
_API = "/api/2.0/mlflow"


class MLflow:
    """Sets tags on runs of one tracking server.

    With `user`, `token` is the password of basic authentication; without, it is a bearer token. `hosts` are other names
    of the server that logs may show. Every tag is set each time, so a run always has the tags of its latest incident.
    """

    pace = 0.0
    extra_notices = frozenset({NoticeKind.INCIDENT})

    def __init__(self, outgoing: Outgoing, url: str, token: str, user: str = "", hosts: tuple[str, ...] = ()) -> None:
        self._outgoing = outgoing
        self._url = url.rstrip("/") + _API
        self._hosts = {urlsplit(url).hostname, *hosts}
        pair = base64.b64encode(f"{user}:{token}".encode()).decode()
        self._headers = {
            "Content-Type": "application/json",
            "Authorization": f"Basic {pair}" if user else f"Bearer {token}",
        }

    def send(self, notice: Notice, key: str, thread: Thread | None = None, first: Notice | None = None) -> None:
        """Does nothing if the log shows no run, several runs, or a run on another server. Raises Undelivered."""
        if notice.kind is NoticeKind.TEST:
            self._check_answer(self._post("experiments/search", {"max_results": 1}))
            return
        run = self._run_of(notice)
        if run is None:
            return
        for name, value in what_failed(notice).items():
            answer = self._post("runs/set-tag", {"run_id": run, "key": f"{PREFIX}.{name}", "value": value})
            if answer.json().get("error_code") == "RESOURCE_DOES_NOT_EXIST":
                return  # the run is on another server or was deleted
            self._check_answer(answer)

    def _run_of(self, notice: Notice) -> str | None:
        runs = values_of(notice, _RUN)
        hosts = {host_of(page) for page in values_of(notice, _PAGE)}
        return runs.pop() if len(runs) == 1 and hosts <= self._hosts else None

    def _post(self, path: str, request: dict[str, Any]) -> Answer:
        return self._outgoing.call("POST", f"{self._url}/{path}", request, self._headers)

    def _check_answer(self, answer: Answer) -> None:
        refuse(answer, "MLflow", str(answer.json().get("message") or ""))
