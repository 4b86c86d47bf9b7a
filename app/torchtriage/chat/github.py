"""Creates GitHub issues over the REST API: one issue per group, in one repository of github.com or GitHub Enterprise
Server."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode, urlsplit

from torchtriage.chat.delivery_errors import Undelivered
from torchtriage.chat.issue_tracker import Draft, IssueTracker
from torchtriage.chat.outbound_http import Answer, Outgoing, refuse
from torchtriage.domain.notice import Thread

_VERSION = "2022-11-28"
_RECENT = timedelta(days=1)  # the search may not find newer issues; the list contains them
# Pages of that list, and issues per page; a page of long issues fits into the part of an answer that is read.
_PAGES, _EACH = 20, 30
_GONE = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)
_MARKUP = re.compile(r"([\\`*_\[\]<>&|~])")
_PINGS = re.compile(r"([@#])")


class GitHub(IssueTracker):
    """The issues of one repository, `OWNER/NAME`."""

    def __init__(self, outgoing: Outgoing, repo: str, token: str, api_url: str) -> None:
        super().__init__(repo)
        self._outgoing = outgoing
        self._api = api_url.rstrip("/")
        self._token = token

    def address_of(self, thread: Thread) -> str:
        parts = urlsplit(self._api)
        host = parts.netloc.removeprefix("api.")  # GitHub Enterprise Server has its API at HOST/api/v3
        return f"{parts.scheme}://{host}/{thread.channel}/issues/{thread.ts}"

    def prose(self, line: str) -> str:
        # GitHub finds names after `@` and numbers after `#` even after a backslash. A zero-width character between them
        # prevents that.
        return _PINGS.sub(r"\1&#8203;", _MARKUP.sub(r"\\\1", line))

    def code(self, text: str) -> str:
        fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", text) or [""]))
        return f"{fence}text\n{text}\n{fence}"

    def link(self, label: str, url: str) -> str:
        return f"[{label}]({url})"

    def check(self) -> None:
        found = self._ask("GET", f"/repos/{self.place}")
        if not found.json().get("has_issues", True):
            raise Undelivered(f"GitHub: issues are turned off in {self.place}")

    def find(self, mark: str) -> str | None:
        since = f"{datetime.now(UTC) - _RECENT:%Y-%m-%dT%H:%M:%SZ}"
        newest = {"state": "all", "sort": "created", "direction": "desc", "since": since, "per_page": _EACH}
        for page in range(1, _PAGES + 1):
            query = urlencode(newest | {"page": page})
            issues = self._ask("GET", f"/repos/{self.place}/issues?{query}").objects()
            if found := _marked(issues, mark):
                return found
            if len(issues) < _EACH:
                break
        asked = urlencode({"q": f'"{mark}" in:body is:issue repo:{self.place}'})
        items = self._ask("GET", f"/search/issues?{asked}").json().get("items")
        return _marked([item for item in items if isinstance(item, dict)] if isinstance(items, list) else [], mark)

    def open(self, draft: Draft) -> str:
        made = self._ask("POST", f"/repos/{self.place}/issues", {"title": draft.title, "body": draft.text}).json()
        if not isinstance(made.get("number"), int):
            raise Undelivered("GitHub answered without the number of the issue", passing=True)
        return str(made["number"])

    def comments(self, thread: Thread) -> list[str]:
        since = f"{datetime.now(UTC) - _RECENT:%Y-%m-%dT%H:%M:%SZ}"
        query = urlencode({"since": since, "per_page": _EACH})
        found = self._ask("GET", f"{_issue(thread)}/comments?{query}", gone=True)
        return [str(comment.get("body")) for comment in found.objects()]

    def comment(self, thread: Thread, text: str) -> None:
        self._ask("POST", f"{_issue(thread)}/comments", {"body": text}, gone=True)

    def is_closed(self, thread: Thread) -> bool | None:
        found = self._ask("GET", _issue(thread), gone=True)
        return None if found.status in _GONE else found.json().get("state") == "closed"

    def close(self, thread: Thread, fixed: bool) -> None:
        self._ask("PATCH", _issue(thread), {"state": "closed", "state_reason": "completed" if fixed else "not_planned"})

    def reopen(self, thread: Thread) -> None:
        self._ask("PATCH", _issue(thread), {"state": "open", "state_reason": "reopened"})

    def _ask(self, method: str, path: str, payload: Any = None, gone: bool = False) -> Answer:
        """Makes a call. With `gone`, also returns the answer that an issue does not exist any more."""
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {self._token}",
            "X-GitHub-Api-Version": _VERSION,
        }
        answer = self._outgoing.call(method, self._api + path, payload, headers)
        if gone and answer.status in _GONE:
            return answer
        _refuse_limit(answer)
        refuse(answer, "GitHub", str(answer.json().get("message") or ""))
        return answer


def _refuse_limit(answer: Answer) -> None:
    """Raises Undelivered for a rate limit, which GitHub may answer with status 403."""
    spent = answer.headers.get("x-ratelimit-remaining") == "0"
    if answer.status != HTTPStatus.FORBIDDEN or not (spent or "retry-after" in answer.headers):
        return
    delay, until = answer.headers.get("retry-after", ""), answer.headers.get("x-ratelimit-reset", "")
    wait = float(delay) if delay.isdecimal() else max(float(until) - time.time(), 1.0) if until.isdecimal() else 60.0
    raise Undelivered("GitHub answered 403: rate limit", passing=True, wait=min(wait, 3600.0))


def _issue(thread: Thread) -> str:
    return f"/repos/{thread.channel}/issues/{thread.ts}"


def _marked(issues: list[dict[str, Any]], mark: str) -> str | None:
    found = [one for one in issues if mark in str(one.get("body")) and "pull_request" not in one]
    return str(found[-1]["number"]) if found else None
