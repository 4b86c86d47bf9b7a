"""Gives every request an id and logs one line when it is answered."""

from __future__ import annotations

import logging
import time
import uuid

import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from torchtriage.lazy_regex import lazy_regex

log = logging.getLogger(__name__)
HEADER = "X-Request-Id"
_RAW_HEADER = HEADER.lower().encode()
_SANE = lazy_regex(r"[A-Za-z0-9._=+/-]{1,128}")
_MAX_PATH_LENGTH = 300
_CLOSED = 499  # the status that proxies log if the client disconnected before the answer


class RequestLog:
    """The outermost middleware. The id comes from the client if it is valid, and is otherwise generated. It is in all
    log lines of the request and in a header of the answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        request_id = given if _SANE.fullmatch(given) else uuid.uuid4().hex
        # Not reset at the end, because the web server reports an error after that, in the same context.
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        scope.setdefault("state", {})  # set here, because routing copies the scope but keeps this state object
        began, status = time.perf_counter(), _CLOSED

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (_RAW_HEADER, request_id.encode())]
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            _log_request(scope, status, time.perf_counter() - began)


def _log_request(scope: Scope, status: int, seconds: float) -> None:
    caller = scope["state"].get("caller")
    log.info(
        "request",
        extra={
            "method": scope["method"],
            "path": scope["path"][:_MAX_PATH_LENGTH],  # without the query, which may contain private search words
            "status": status,
            "ms": round(seconds * 1000, 1),
            "caller": caller.name if caller else None,
            "token": caller.token if caller else None,
            "address": scope["client"][0] if scope["client"] else None,
        },
    )
