"""A request's body as the logs it holds: all of it is received first, then a function reads them in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import closing, suppress
from typing import TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from torchtriage.errors import BadInput, LogTooLarge
from torchtriage.reading.unpack import Upload
from torchtriage.web.api import multipart
from torchtriage.web.api.request_spool import Spool
from torchtriage.web.api.upload_lanes import Intake, Watch
from torchtriage.web.errors import Busy, TooSlow, UnsupportedBody

Result = TypeVar("Result")

_PATIENCE = 60.0  # seconds that may be waited for a sender who sends nothing
_SLOWEST, _SLOW = 1 << 10, 256 << 10  # bytes that give a second of it back: of the first ones, and of all after 64 MB
_IN_TIME = 256  # seconds in which one could send as much as has come, at the rate that is asked for in between
_OVERHEAD = 16 << 20  # bytes that a form and compression can add to a log
_DRAINED, _DRAINING = 1 << 30, 10  # bytes and seconds of a refused body that are read and thrown away
_ENCODINGS = {"gzip": b"\x1f\x8b", "x-gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}


async def with_uploads(
    request: Request,
    intake: Intake,
    limit: int,
    work: Callable[[Iterator[Upload]], Result],
    fields: Collection[str] = ("log",),
) -> Result:
    """-> what `work` makes of the logs in the body; `fields` are those of a form that hold logs.

    `limit` is how many bytes a log may have. `work` may be restarted as long as it reads. Raises LogTooLarge,
    UnsupportedBody, BadForm, TooSlow, ClientDisconnect, Busy, StorageUnavailable, Stopping, and what `work` raises.
    """
    body = _Body(request.receive)
    try:
        async with intake.spools.open() as spool:
            await _receive(request, body, limit, spool)

            def read(watch: Watch) -> Result:
                uploads = _uploads(request, _watched(spool.chunks(), watch), watch, fields)
                with closing(_in_turn(uploads, watch)) as one_by_one:
                    return work(one_by_one)

            return await intake.run(read, spool.size)
    except (BadInput, Busy):
        await _drain(request, body)
        raise


async def _receive(request: Request, body: _Body, limit: int, spool: Spool) -> None:
    most = limit + _OVERHEAD
    announced = int(request.headers.get("content-length", 0))
    while announced <= most and spool.size <= most:
        chunk = await body.next()
        if chunk is None:
            return
        await spool.add(chunk)
    raise LogTooLarge(f"the body is larger than the limit of {limit} bytes", limit=limit)


def _in_turn(uploads: Iterator[Upload], watch: Watch) -> Generator[Upload, None, None]:
    """Yields the same; anyone who goes through them has its turn until all is read."""
    with watch.turn:
        yield from uploads


def _watched(chunks: Iterator[bytes], watch: Watch) -> Iterator[bytes]:
    """Yields the same. A form can have much in it that belongs to no log."""
    for chunk in chunks:
        watch(0)
        yield chunk


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
    """The chunks of a body, from a sender who is not waited for for ever: the more has come, the faster it has to."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._left = _PATIENCE
        self._came = 0
        self._ended = False

    async def next(self) -> bytes | None:
        """-> what comes next; None at the end. Raises TooSlow, ClientDisconnect."""
        if self._ended:
            return None
        clock = asyncio.get_running_loop().time
        began = clock()
        rate = min(max(_SLOWEST, self._came / _IN_TIME), _SLOW)
        try:
            async with asyncio.timeout(self._left):
                message = await self._receive()
        except TimeoutError:
            told = f"fewer than {rate:.0f} bytes a second arrived, for longer than {_PATIENCE:g} seconds"
            raise TooSlow(told) from None
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk: bytes = message.get("body", b"")
        self._ended = not message.get("more_body", False)
        self._came += len(chunk)
        # Only waiting counts, and not the time in which nobody asked for more.
        self._left = min(_PATIENCE, self._left - (clock() - began) + len(chunk) / rate)
        return chunk


def _uploads(request: Request, chunks: Iterator[bytes], watch: Watch, fields: Collection[str]) -> Iterator[Upload]:
    """Raises UnsupportedBody and BadForm before the first upload where the headers tell."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", *_ENCODINGS):
        raise UnsupportedBody("unsupported Content-Encoding; use gzip or zstd", encoding=encoding[:100])
    content_type = request.headers.get("content-type", "")
    kind = content_type.split(";")[0].strip().lower()
    if kind == "multipart/form-data":
        if encoding != "identity":
            raise UnsupportedBody("a form cannot have a Content-Encoding; compress the files in it")
        parts = multipart.uploads(chunks, multipart.boundary_of(content_type), fields)
        return (part._replace(watch=watch) for part in parts)
    if kind.startswith("multipart/"):
        raise UnsupportedBody("unsupported multipart type; use multipart/form-data", content_type=kind[:100])
    return iter([Upload("log", _encoded(chunks, encoding), watch=watch)])


def _encoded(chunks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Yields the same chunks, which say themselves how they are compressed; refuses a header that says otherwise."""
    magic = _ENCODINGS.get(encoding, b"")
    begin = b""
    for chunk in chunks:
        begin += chunk
        if len(begin) >= len(magic):
            break
    if begin and not begin.startswith(magic):
        raise UnsupportedBody(f"the body does not match its Content-Encoding: {encoding}")
    yield begin
    yield from chunks
