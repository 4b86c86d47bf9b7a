"""Rate limits per caller, and size limits of requests."""

from __future__ import annotations

import math
import time
from ipaddress import IPv6Network, ip_address

from limits import RateLimitItem, parse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from torchtriage.domain.access import ANYONE, Caller
from torchtriage.domain.byte_sizes import limit_text
from torchtriage.errors import BadInput

_MAX_FORM_BYTES = 2 << 20  # maximum bytes of a body that is not a log
# Paths that accept logs, which have limits of their own.
_LOGS = frozenset({"/", "/api/v1/incidents", "/api/v1/triage", "/api/v1/decision", "/v1/logs", "/mcp"})


class BodyLimit:
    """Middleware that limits bodies that are not logs, because they are read into memory before authentication."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _LOGS:
            await self._app(scope, receive, send)
            return
        size = 0

        async def receiving() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > _MAX_FORM_BYTES:
                raise HTTPException(413, f"the request is larger than the limit of {limit_text(_MAX_FORM_BYTES)}")
            return message

        await self._app(scope, receiving, send)


class TooMany(BadInput):
    """The caller exceeded a rate limit."""

    status = 429
    code = "too_many_requests"


class RateLimit:
    """Counts requests per token, or per address without a valid token, and failed logins per address.

    Both rates are texts such as `600/minute`. If `allowed` is empty, requests are not counted. Safe to use from several
    threads.
    """

    def __init__(self, allowed: str, wrong_logins: str) -> None:
        self._allowed = parse(allowed) if allowed else None
        self._wrong_logins = parse(wrong_logins)
        self._window = MovingWindowRateLimiter(MemoryStorage())

    def count(self, caller: Caller | None, address: str) -> None:
        """Counts a request; `caller` is None if it is not authenticated. Raises TooMany, with the seconds to wait in
        `detail`."""
        if self._allowed is None:
            return
        who = _sender(address) if caller is None or caller is ANYONE else caller.name
        key = ("token", caller.token) if caller and caller.token else ("sender", who)
        if not self._window.hit(self._allowed, *key):
            wait = self._wait(self._allowed, *key)
            raise TooMany(f"more than {self._allowed} from {who}; wait {wait} s", retry_after=wait)

    def before_login(self, address: str) -> None:
        """Raises TooMany if this address reached the limit of failed logins; the secret is not checked then. Logins
        from other addresses still work."""
        if not self._window.test(self._wrong_logins, "login", _sender(address)):
            raise self._too_many_wrong(address)

    def wrong_login(self, address: str) -> None:
        """Counts a failed login. Raises TooMany if it exceeds the limit, which concurrent logins can do."""
        if not self._window.hit(self._wrong_logins, "login", _sender(address)):
            raise self._too_many_wrong(address)

    def _too_many_wrong(self, address: str) -> TooMany:
        wait = self._wait(self._wrong_logins, "login", _sender(address))
        return TooMany(f"too many failed logins from {_sender(address)}; wait {wait} s", retry_after=wait)

    def _wait(self, item: RateLimitItem, *key: str) -> int:
        return max(1, math.ceil(self._window.get_window_stats(item, *key).reset_time - time.time()))


def _sender(address: str) -> str:
    """Returns what counts as one sender: the address, or for IPv6 its /64 network, because one host can use all its
    addresses."""
    try:
        known = ip_address(address)
    except ValueError:
        return address
    return str(IPv6Network((int(known), 64), strict=False)) if known.version == 6 else address
