"""Creates Jira issues over version 2 of the REST API, which Jira Cloud and Data Center share: one issue per group, in
one project."""

from __future__ import annotations

import base64
import re
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

from torchtriage.chat.delivery_errors import Undelivered
from torchtriage.chat.issue_tracker import Draft, IssueTracker
from torchtriage.chat.outbound_http import Answer, Outgoing, refuse
from torchtriage.domain.notice import Thread

_MARKUP = re.compile(r"([{}\[\]!|*_^~+#])")
_NEWEST = 50  # number of newest comments that are read
_INDEXED = 30.0  # seconds until the search finds a new issue


class Jira(IssueTracker):
    """The issues of one project.

    With `user`, `token` is an API token of Jira Cloud for that account; without, it is a personal access token of Data
    Center. `done` is the status for closed issues; if empty, the first status of the category Done is used.
    """

    def __init__(
        self, outgoing: Outgoing, url: str, project: str, kind: str, token: str, user: str = "", done: str = ""
    ) -> None:
        super().__init__(project)
        self._outgoing = outgoing
        self._url = url.rstrip("/")
        self._kind = kind
        self._done = done.lower()
        pair = base64.b64encode(f"{user}:{token}".encode()).decode()
        self._authorization = f"Basic {pair}" if user else f"Bearer {token}"

    def address_of(self, thread: Thread) -> str:
        return f"{self._url}/browse/{thread.ts}"

    def prose(self, line: str) -> str:
        return _MARKUP.sub(r"\\\1", line.replace("\\", "&#92;"))

    def code(self, text: str) -> str:
        return "{noformat}\n" + text.replace("{noformat", "{ noformat") + "\n{noformat}"

    def link(self, label: str, url: str) -> str:
        return f"[{label}|{url}]"

    def check(self) -> None:
        self._ask("GET", f"/project/{quote(self.place, safe='')}")

    def find(self, mark: str) -> str | None:
        asked = {"jql": f'project = "{self.place}" AND description ~ "{mark}" ORDER BY created ASC'}
        query = urlencode(asked | {"fields": "description", "maxResults": "10"})
        found = self._ask("GET", f"/search/jql?{query}", gone=True)
        if found.status == HTTPStatus.NOT_FOUND:  # Data Center has only the search API that Jira Cloud removed
            found = self._ask("GET", f"/search?{query}")
        issues = found.json().get("issues")
        for issue in issues if isinstance(issues, list) else []:
            if mark in str((issue.get("fields") or {}).get("description")):
                return str(issue["key"])
        return None

    def open(self, draft: Draft) -> str:
        fields = {
            "project": {"key": self.place},
            "issuetype": {"name": self._kind},
            "summary": draft.title,
            "description": draft.text,
        }
        try:
            made = self._ask("POST", "/issue", {"fields": fields}).json()
        except Undelivered as problem:
            raise Undelivered(problem.message, problem.passing, _retry_delay(problem)) from None
        if not isinstance(made.get("key"), str):
            raise Undelivered("Jira answered without the key of the issue", passing=True, wait=_INDEXED)
        return str(made["key"])

    def comments(self, thread: Thread) -> list[str]:
        query = urlencode({"orderBy": "-created", "maxResults": _NEWEST})
        found = self._ask("GET", f"{_issue(thread)}/comment?{query}", gone=True).json().get("comments")
        return [str(comment.get("body")) for comment in found] if isinstance(found, list) else []

    def comment(self, thread: Thread, text: str) -> None:
        self._ask("POST", f"{_issue(thread)}/comment", {"body": text}, gone=True)

    def is_closed(self, thread: Thread) -> bool | None:
        found = self._ask("GET", f"{_issue(thread)}?fields=status", gone=True)
        if found.status == HTTPStatus.NOT_FOUND:
            return None
        return _is_done((found.json().get("fields") or {}).get("status"))

    def close(self, thread: Thread, fixed: bool) -> None:
        self._move(thread, done=True)

    def reopen(self, thread: Thread) -> None:
        self._move(thread, done=False)

    def _move(self, thread: Thread, done: bool) -> None:
        """Makes a transition into a status of the category Done, or out of it. Prefers the status in the settings."""
        known = self._ask("GET", f"{_issue(thread)}/transitions").json().get("transitions")
        fitting = [one for one in known if _is_done(one.get("to")) is done] if isinstance(known, list) else []
        if not fitting:
            missing = "a status of the category Done" if done else "an open status"
            raise Undelivered(f"Jira: no transition moves {thread.ts} to {missing}")
        wanted = [one for one in fitting if str(one["to"].get("name")).lower() == self._done]
        step = (wanted or fitting)[0]
        self._ask("POST", f"{_issue(thread)}/transitions", {"transition": {"id": str(step["id"])}})

    def _ask(self, method: str, path: str, payload: Any = None, gone: bool = False) -> Answer:
        """Makes a call. With `gone`, also returns the answer that something does not exist."""
        headers = {"Accept": "application/json", "Authorization": self._authorization}
        answer = self._outgoing.call(method, f"{self._url}/rest/api/2{path}", payload, headers)
        if not (gone and answer.status == HTTPStatus.NOT_FOUND):
            refuse(answer, "Jira", _error_messages(answer.json()))
        return answer


def _error_messages(problem: dict[str, Any]) -> str:
    """Returns Jira's error messages, in general and by field."""
    general, fields = problem.get("errorMessages"), problem.get("errors")
    messages = [str(one) for one in general] if isinstance(general, list) else []
    messages += [f"{name} - {why}" for name, why in fields.items()] if isinstance(fields, dict) else []
    return ", ".join(messages)


def _retry_delay(problem: Undelivered) -> float | None:
    """Returns how many seconds to wait before a retry. The issue may have been created and not be in the search yet."""
    return max(problem.wait or 0.0, _INDEXED) if problem.passing else None


def _issue(thread: Thread) -> str:
    return f"/issue/{quote(thread.ts, safe='')}"


def _is_done(status: Any) -> bool:
    category = status.get("statusCategory") if isinstance(status, dict) else None
    return isinstance(category, dict) and category.get("key") == "done"
