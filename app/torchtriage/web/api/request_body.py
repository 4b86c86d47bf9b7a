"""Reads the logs in a request body. The whole body is received first; then a function reads it in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import closing, suppress
from typing import TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from torchtriage.domain.byte_sizes import limit_text
from torchtriage.errors import BadInput, LogTooLarge
from torchtriage.reading.unpack import Upload
from torchtriage.web.api import multipart
from torchtriage.web.api.request_spool import Spool
from torchtriage.web.api.upload_lanes import Intake, Watch
from torchtriage.web.errors import Busy, TooSlow, UnsupportedBody

Result = TypeVar("Result")

_TIMEOUT = 60.0  # seconds that a sender may send nothing
_SLOWEST, _SLOW = 1 << 10, 256 << 10  # bytes that earn a second of waiting: at the beginning, and after 64 MB
_IN_TIME = 256  # the required rate between these two is the bytes received so far, divided by these seconds
_OVERHEAD = 16 << 20  # bytes that a form and compression can add to a log
_DRAINED, _DRAINING = 1 << 30, 10  # bytes and seconds for which a refused body is read and discarded
_ENCODINGS = {"gzip": b"\x1f\x8b", "x-gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}


async def with_uploads(
    request: Request,
    intake: Intake,
    limit: int,
    work: Callable[[Iterator[Upload]], Result],
    fields: Collection[str] = ("log",),
) -> Result:
    """Returns what `work` makes of the logs in the body. `fields` are the form fields that contain logs.

    `limit` is the maximum size of a log in bytes. `work` may be restarted while it reads. Raises LogTooLarge,
    UnsupportedBody, BadForm, TooSlow, ClientDisconnect, Busy, StorageUnavailable, Stopping, and whatever `work` raises.
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
    raise LogTooLarge(f"the body is larger than the limit of {limit_text(limit)}", limit=limit)


def _in_turn(uploads: Iterator[Upload], watch: Watch) -> Generator[Upload, None, None]:
    """Yields the same uploads. The reader holds its turn until all are read."""
    with watch.turn:
        yield from uploads


def _watched(chunks: Iterator[bytes], watch: Watch) -> Iterator[bytes]:
    """Yields the same chunks and reports to `watch`, because a form can contain much data that belongs to no log."""
    for chunk in chunks:
        watch(0)
        yield chunk


async def _drain(request: Request, body: _Body) -> None:
    """Reads the rest of a refused body for a while, because most clients read an answer only after sending
    everything."""
    if "expect" in request.headers:
        return  # this client waits for the answer before it sends the body
    left = _DRAINED
    with suppress(TimeoutError, TooSlow, ClientDisconnect):
        async with asyncio.timeout(_DRAINING):
            while left > 0 and (chunk := await body.next()) is not None:
                left -= len(chunk)


class _Body:
    """The chunks of a body. Limits how long a slow sender can block: the more has arrived, the faster it must send."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._left = _TIMEOUT
        self._came = 0
        self._ended = False

    async def next(self) -> bytes | None:
        """Returns the next chunk, or None at the end. Raises TooSlow or ClientDisconnect."""
        if self._ended:
            return None
        clock = asyncio.get_running_loop().time
        began = clock()
        rate = min(max(_SLOWEST, self._came / _IN_TIME), _SLOW)
        try:
            async with asyncio.timeout(self._left):
                message = await self._receive()
        except TimeoutError:
            problem = f"fewer than {rate:.0f} bytes a second arrived, for longer than {_TIMEOUT:g} seconds"
            raise TooSlow(problem) from None
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk: bytes = message.get("body", b"")
        self._ended = not message.get("more_body", False)
        self._came += len(chunk)
        # Only waiting for the sender counts, not the time between two calls.
        self._left = min(_TIMEOUT, self._left - (clock() - began) + len(chunk) / rate)
        return chunk


def _uploads(request: Request, chunks: Iterator[bytes], watch: Watch, fields: Collection[str]) -> Iterator[Upload]:
    """Yields the uploads. If the headers are already wrong, raises UnsupportedBody or BadForm before the first one."""
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
    """Yields the same chunks. Raises UnsupportedBody if their first bytes do not match the Content-Encoding."""
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
