"""A request's body as the logs it holds, for a function that runs in a thread and reads them as they come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from app.errors import BadInput, LogTooLarge
from app.reading.unpack import Budget, Upload
from app.web.api import multipart
from app.web.errors import TooSlow, UnsupportedBody

Result = TypeVar("Result")

_AT_ONCE = 1 << 20  # bytes read before a thread is taken, so that small bodies from slow senders hold none
_PATIENCE = 60.0  # seconds that may be waited for a sender who sends nothing
_SLOWEST = 1024  # bytes that give a second of it back: who sends less a second for long is not waited for
_OVERHEAD = 16 << 20  # bytes that a form and compression can add to a log
SENDERS = 40  # bodies worked on at the same time: threads that the event loop's own executor should have
_DRAINED, _DRAINING = 1 << 30, 10  # bytes and seconds of a refused body that are read and thrown away
_ENCODINGS = {"gzip": b"\x1f\x8b", "x-gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}


async def with_uploads(
    request: Request, limit: int, work: Callable[[Iterator[Upload]], Result], fields: Collection[str] = ("log",)
) -> Result:
    """-> what `work` makes of the logs in the body; `fields` are those of a form that hold logs.

    `limit` is how many bytes a log may have. Raises LogTooLarge, UnsupportedBody, BadForm, TooSlow, ClientDisconnect,
    and what `work` raises.
    """
    body = _Body(request.receive)
    try:
        return await _worked(request, body, limit, work, fields)
    except BadInput:
        await _drain(request, body)
        raise


async def _worked(
    request: Request,
    body: _Body,
    limit: int,
    work: Callable[[Iterator[Upload]], Result],
    fields: Collection[str],
) -> Result:
    most = limit + _OVERHEAD
    if int(request.headers.get("content-length", 0)) > most:
        raise LogTooLarge(f"the body is larger than the limit of {limit} bytes", limit=limit)
    begin, ended = await body.begin()
    loop = asyncio.get_running_loop()

    def chunks() -> Iterator[bytes]:
        yield from begin
        while not ended and (chunk := asyncio.run_coroutine_threadsafe(body.next(), loop).result()) is not None:
            yield chunk

    uploads = _uploads(request, Budget(most).spend(chunks()), fields)
    # asyncio's own means: anyio's take three times as long, for each of the many small logs.
    return await asyncio.to_thread(work, uploads)


async def _drain(request: Request, body: _Body) -> None:
    """Reads on for a while: most senders look for an answer only when they have sent everything."""
    if "expect" in request.headers:
        return  # this one waits for the answer before it sends
    left = _DRAINED
    with suppress(TimeoutError, TooSlow, ClientDisconnect):
        async with asyncio.timeout(_DRAINING):
            while left > 0 and (chunk := await body.next()) is not None:
                left -= len(chunk)


class _Body:
    """The chunks of a body, from a sender who is not waited for for ever."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._left = _PATIENCE
        self._ended = False

    async def next(self) -> bytes | None:
        """-> what comes next; None at the end. Raises TooSlow, ClientDisconnect."""
        if self._ended:
            return None
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(self._left):
                message = await self._receive()
        except TimeoutError:
            raise TooSlow(f"less than {_SLOWEST} bytes a second came, for longer than {_PATIENCE:g} seconds") from None
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk: bytes = message.get("body", b"")
        self._ended = not message.get("more_body", False)
        # Only waiting counts, and not the time in which nobody asked for more.
        self._left = min(_PATIENCE, self._left - (clock() - began) + len(chunk) / _SLOWEST)
        return chunk

    async def begin(self) -> tuple[list[bytes], bool]:
        """-> the first chunks, and whether that is all of it."""
        chunks: list[bytes] = []
        size = 0
        while size < _AT_ONCE and (chunk := await self.next()) is not None:
            chunks.append(chunk)
            size += len(chunk)
        return chunks, self._ended


def _uploads(request: Request, chunks: Iterator[bytes], fields: Collection[str]) -> Iterator[Upload]:
    """Raises UnsupportedBody and BadForm before the first upload where the headers tell."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", *_ENCODINGS):
        raise UnsupportedBody("this Content-Encoding is not taken; gzip and zstd are", encoding=encoding[:100])
    content_type = request.headers.get("content-type", "")
    kind = content_type.split(";")[0].strip().lower()
    if kind == "multipart/form-data":
        if encoding != "identity":
            raise UnsupportedBody("a form is not taken with a Content-Encoding; compress the files in it")
        return multipart.uploads(chunks, multipart.boundary_of(content_type), fields)
    if kind.startswith("multipart/"):
        raise UnsupportedBody("of multipart only multipart/form-data is taken", content_type=kind[:100])
    return iter([Upload("log", _encoded(chunks, encoding))])


def _encoded(chunks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Yields the same chunks, which say themselves how they are compressed; refuses a header that says otherwise."""
    magic = _ENCODINGS.get(encoding, b"")
    begin = b""
    for chunk in chunks:
        begin += chunk
        if len(begin) >= len(magic):
            break
    if begin and not begin.startswith(magic):
        raise UnsupportedBody(f"the body is not what its Content-Encoding says: {encoding}")
    yield begin
    yield from chunks
