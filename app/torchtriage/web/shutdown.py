"""Answers requests that a shutdown interrupts, so that the client sends them again."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from torchtriage.web.errors import RETRY_AFTER, Stopping
from torchtriage.web.json_responses import Answer

_DRAINING = 2  # seconds to continue reading; closing the connection with unread data would lose the answer


class CutShort:
    """Middleware for requests that the server cancels at shutdown. Without it they would get only "Internal Server
    Error"."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answered = False

        async def sending(message: Message) -> None:
            nonlocal answered
            answered = True
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except asyncio.CancelledError:
            if answered or scope["type"] != "http":
                raise
            await _answer(receive, send)


async def _answer(receive: Receive, send: Send) -> None:
    error = Stopping()
    answer = Answer(error.as_dict(), error.status, {"Retry-After": RETRY_AFTER, "Connection": "close"})
    await send({"type": "http.response.start", "status": answer.status_code, "headers": answer.raw_headers})
    await send({"type": "http.response.body", "body": bytes(answer.body), "more_body": True})
    with suppress(TimeoutError, asyncio.CancelledError):
        async with asyncio.timeout(_DRAINING):
            while (await receive()).get("more_body", False):
                pass
    await send({"type": "http.response.body"})
