"""uvicorn's HTTP/1.1 protocol with limits for the size and the time of a request's head. A client that closes its
sending side still gets its answer."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

_MAX_HEAD_LENGTH = 64 << 10  # maximum bytes of the request line and headers, except for the rest of one network chunk


class BoundedHead(HttpToolsProtocol):
    """Refuses a head that would fill the memory, and one that never ends."""

    seconds = 30.0  # time limit for the whole head of a request

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._head = 0  # bytes of the head so far
        self._reading_head = True
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._reading_head:
            self._head += len(data)
        super().data_received(data)
        if self._reading_head and not self.transport.is_closing():
            if self._head > _MAX_HEAD_LENGTH:
                self._refuse(431)
            elif self._deadline is None:
                self._wait()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Returns whether the connection stays open: until a client that sends no more has its answer."""
        self._stop_waiting()
        last: RequestResponseCycle | None = self.cycle
        if last is None or last.response_complete or last.more_body:
            return False
        last.keep_alive = False
        return True

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._reading_head = True

    def on_headers_complete(self) -> None:
        self._head, self._reading_head = 0, False
        self._stop_waiting()
        super().on_headers_complete()

    def _wait(self) -> None:
        self._deadline = self.loop.call_later(self.seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        if self._head:
            self._refuse(408)
        else:
            self.transport.close()  # the client sent nothing; browsers open such connections in advance

    def _refuse(self, status: int) -> None:
        self._stop_waiting()
        self.transport.write(STATUS_LINE[status] + b"content-length: 0\r\nconnection: close\r\n\r\n")
        self.transport.close()
