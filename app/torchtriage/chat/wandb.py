"""Sets a tag and a config value on a failed run in W&B, if the log shows the page of the run.

Uses the GraphQL API of W&B's own library. The requests are those of `wandb.Api().run(path)` and `run.update()` (wandb
0.31), with fewer fields.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any
from urllib.parse import urlsplit

from torchtriage.chat.delivery_errors import Undelivered
from torchtriage.chat.outbound_http import Outgoing, refuse
from torchtriage.chat.run_tags import PREFIX, host_of, values_of, what_failed
from torchtriage.domain.notice import Notice, NoticeKind, Thread

_PAGE = "wandb_run_url"  # name of a fact of the log
_PATH = re.compile(r"/(?P<entity>[^/]+)/(?P<project>[^/]+)/runs/(?P<name>[^/]+)")
_TAG = 64  # maximum characters that W&B allows
_VIEWER = "query Viewer { viewer { entity } }"
_RUN = """query Run($entity: String!, $project: String!, $name: String!) {
  project(name: $project, entityName: $entity) { run(name: $name) { id tags config } }
}"""
_UPDATE = """mutation UpsertBucket($id: String!, $tags: [String!], $config: JSONString!) {
  upsertBucket(input: {id: $id, tags: $tags, config: $config}) { bucket { id } }
}"""


class WandB:
    """Tags runs of one server.

    `url` is its API: `https://api.wandb.ai`, or your own server. `key` is an API key. `hosts` are other names of the
    server that logs may show. A tag of an earlier incident is replaced, so a notice can be sent again.
    """

    pace = 0.0
    extra_notices = frozenset({NoticeKind.INCIDENT})

    def __init__(self, outgoing: Outgoing, url: str, key: str, hosts: tuple[str, ...] = ()) -> None:
        self._outgoing = outgoing
        self._url = url.rstrip("/") + "/graphql"
        host = urlsplit(url).hostname or ""
        self._hosts = {host, host.removeprefix("api."), *hosts}  # the pages of api.wandb.ai are on wandb.ai
        pair = base64.b64encode(f"api:{key}".encode()).decode()
        self._headers = {"Content-Type": "application/json", "Authorization": f"Basic {pair}"}

    def send(self, notice: Notice, key: str, thread: Thread | None = None, first: Notice | None = None) -> None:
        """Does nothing if the log shows no run, several runs, or a run that this server does not have. Raises
        Undelivered."""
        if notice.kind is NoticeKind.TEST:
            if not self._ask(_VIEWER, {}).get("viewer"):
                raise Undelivered("W&B refused it: the API key belongs to no user")
            return
        path = self._path_of(notice)
        if path is None:
            return
        run = (self._ask(_RUN, path).get("project") or {}).get("run")
        if not run:
            return
        tags = [tag for tag in run.get("tags") or () if not tag.startswith(f"{PREFIX}:")]
        failed = what_failed(notice)
        name = notice.entry or notice.outcome
        config = _object(run.get("config")) | {PREFIX: {"value": failed, "desc": None}}
        given = {"id": run["id"], "tags": [*tags, f"{PREFIX}:{name}"[:_TAG]], "config": json.dumps(config)}
        self._ask(_UPDATE, given)

    def _path_of(self, notice: Notice) -> dict[str, str] | None:
        pages = values_of(notice, _PAGE)
        if not pages or not {host_of(page) for page in pages} <= self._hosts:
            return None
        found = {_PATH.fullmatch(urlsplit(page).path) for page in pages}
        paths = {match.group(0): match.groupdict() for match in found if match}
        return next(iter(paths.values())) if len(paths) == 1 and None not in found else None

    def _ask(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        answer = self._outgoing.call("POST", self._url, {"query": query, "variables": variables}, self._headers)
        body = answer.json()
        errors = "; ".join(str(error.get("message")) for error in body.get("errors") or () if isinstance(error, dict))
        refuse(answer, "W&B", errors)
        if errors or not isinstance(body.get("data"), dict):
            raise Undelivered(f"W&B refused it: {errors[:200] or 'no JSON'}")
        found: dict[str, Any] = body["data"]
        return found


def _object(text: Any) -> dict[str, Any]:
    """Parses the run's config, which the update replaces as a whole. Raises Undelivered if it is invalid, so that no
    config is lost."""
    try:
        found = json.loads(text or "{}")
    except (TypeError, ValueError):
        found = None
    if not isinstance(found, dict):
        raise Undelivered("W&B refused it: the run's config is not a JSON object")
    return found
