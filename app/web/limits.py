"""How often one caller may ask, and how much may be sent."""

from __future__ import annotations

import math
import time

from limits import RateLimitItem
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.domain.access import ANYONE, Caller
from app.errors import BadInput

_LARGEST_FORM = 2 << 20  # bytes of a body that is no log
# Where logs are taken, and counted as they come.
_LOGS = frozenset({"/", "/api/v1/incidents", "/api/v1/triage", "/mcp"})


class BodyLimit:
    """Middleware: other bodies than logs are read into memory, and before anybody knows whose they are."""

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
            if size > _LARGEST_FORM:
                raise HTTPException(413, f"this takes no more than {_LARGEST_FORM} bytes")
            return message

        await self._app(scope, receiving, send)


class TooMany(BadInput):
    """The caller asked more often than the settings allow."""

    status = 429
    code = "too_many_requests"


class RateLimit:
    """Counts requests by token, or by address where there is no login. None counts nothing."""

    def __init__(self, allowed: RateLimitItem | None) -> None:
        self._allowed = allowed
        self._window = MovingWindowRateLimiter(MemoryStorage())

    def count(self, caller: Caller, address: str) -> None:
        """Raises TooMany, with the seconds to wait in `detail`."""
        if self._allowed is None:
            return
        who = address if caller is ANYONE else caller.name
        key = who if caller.token is None else f"token {caller.token}"
        if not self._window.hit(self._allowed, key):
            free_at = self._window.get_window_stats(self._allowed, key).reset_time
            wait = max(1, math.ceil(free_at - time.time()))
            raise TooMany(f"more than {self._allowed} from {who}; wait {wait} s", retry_after=wait)
