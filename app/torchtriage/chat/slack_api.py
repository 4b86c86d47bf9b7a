"""Calls methods of Slack's Web API with the bot's token."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import urlencode, urlsplit

from torchtriage.chat.delivery_errors import Undelivered
from torchtriage.chat.outbound_http import Answer, Outgoing, refuse

SLACK = "https://slack.com/api/"
_HOSTS = ("slack.com", "slack-gov.com", "slack-files.com")
_PASSING = {"ratelimited", "rate_limited", "internal_error", "fatal_error", "service_unavailable", "request_timeout"}


class SlackApi:
    """Slack's Web API. All methods raise Undelivered; its `detail` contains Slack's error code."""

    def __init__(self, outgoing: Outgoing, token: str, base: str = SLACK) -> None:
        self._outgoing = outgoing
        self._base = base.rstrip("/") + "/"
        self._authorization = {"Authorization": f"Bearer {token}"}

    def call(self, method: str, arguments: dict[str, Any], seconds: float = 15) -> dict[str, Any]:
        """Returns the answer of a method that accepts JSON."""
        kind = {"Content-Type": "application/json; charset=utf-8", **self._authorization}
        content = json.dumps(arguments, ensure_ascii=False).encode("utf-8", "replace")
        return _found(method, self._outgoing.post(self._base + method, content, kind, seconds))

    def read(self, method: str, arguments: dict[str, str]) -> dict[str, Any]:
        """Returns the answer of a method that reads, because those accept only forms."""
        kind = {"Content-Type": "application/x-www-form-urlencoded", **self._authorization}
        return _found(method, self._outgoing.post(self._base + method, urlencode(arguments).encode(), kind))

    def download(self, url: str, most: int, seconds: float) -> AbstractContextManager[Iterator[bytes]]:
        """Yields the bytes of a file. Its URL must be on a Slack host, because the token is sent there."""
        if not is_slacks(url, self._base):
            raise Undelivered("the file's URL is not on a Slack host")
        return self._outgoing.download(url, self._authorization, most, seconds)


def is_slacks(url: str, base: str = SLACK) -> bool:
    """Returns whether a URL is on a Slack host, or on the host of the API URL in the settings."""
    parts, own = urlsplit(url), urlsplit(base)
    if (parts.scheme, parts.netloc) == (own.scheme, own.netloc):
        return True
    host = (parts.hostname or "").lower()
    return parts.scheme == "https" and any(host == known or host.endswith(f".{known}") for known in _HOSTS)


def _found(method: str, answer: Answer) -> dict[str, Any]:
    refuse(answer, "Slack")
    found = answer.json()
    if found.get("ok") is not True:
        error = str(found.get("error") or "no JSON")[:100]
        needs = f", it needs the scope {found['needed']}" if found.get("needed") else ""
        problem = Undelivered(f"Slack refused {method}: {error}{needs}", error in _PASSING)
        problem.detail["error"] = error
        raise problem
    return found
