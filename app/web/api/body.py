"""A request's body as the logs it holds, for a function that runs in a thread and reads them as they come."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import anyio
from anyio import from_thread, to_thread
from fastapi import Request
from starlette.requests import ClientDisconnect

from app.errors import BadInput, LogTooLarge
from app.reading.unpack import Budget, Upload
from app.web.api import multipart
from app.web.errors import TooSlow, UnsupportedBody

Result = TypeVar("Result")

_AT_ONCE = 1 << 20  # bytes read before a thread is taken, so that small bodies from slow senders hold none
_SILENCE = 60  # seconds
_OVERHEAD = 16 << 20  # bytes that a form and compression can add to a log
_SENDERS = 40  # bodies worked on at the same time
_DRAINED, _DRAINING = 1 << 30, 10  # bytes and seconds of a refused body that are read and thrown away
_ENCODINGS = {"gzip": b"\x1f\x8b", "x-gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}
_limiter = anyio.lowlevel.RunVar[anyio.CapacityLimiter]("bodies")


async def with_uploads(
    request: Request, limit: int, work: Callable[[Iterator[Upload]], Result], fields: Collection[str] = ("log",)
) -> Result:
    """-> what `work` makes of the logs in the body; `fields` are those of a form that hold logs.

    `limit` is how many bytes a log may have. Raises LogTooLarge, UnsupportedBody, BadForm, TooSlow, ClientDisconnect,
    and what `work` raises.
    """
    body = request.stream()
    try:
        return await _worked(request, body, limit, work, fields)
    except BadInput:
        await _drain(request, body)
        raise


async def _worked(
    request: Request,
    body: AsyncIterator[bytes],
    limit: int,
    work: Callable[[Iterator[Upload]], Result],
    fields: Collection[str],
) -> Result:
    most = limit + _OVERHEAD
    if int(request.headers.get("content-length", 0)) > most:
        raise LogTooLarge(f"the body is larger than the limit of {limit} bytes", limit=limit)
    begin, ended = await _begin(body)

    def chunks() -> Iterator[bytes]:
        yield from begin
        while not ended and (chunk := from_thread.run(_next, body)) is not None:
            yield chunk

    uploads = _uploads(request, Budget(most).spend(chunks()), fields)
    return await to_thread.run_sync(work, uploads, limiter=_senders())


async def _drain(request: Request, body: AsyncIterator[bytes]) -> None:
    """Reads on for a while: most senders look for an answer only when they have sent everything."""
    if "expect" in request.headers:
        return  # this one waits for the answer before it sends
    left = _DRAINED
    with anyio.move_on_after(_DRAINING), suppress(ClientDisconnect):
        while left > 0 and (chunk := await anext(body, None)) is not None:
            left -= len(chunk)


async def _begin(body: AsyncIterator[bytes]) -> tuple[list[bytes], bool]:
    """-> the first chunks of a body, and whether that is all of it."""
    chunks: list[bytes] = []
    size = 0
    with _patience() as patience:
        while size < _AT_ONCE:
            chunk = await anext(body, None)
            if chunk is None:
                return chunks, True
            chunks.append(chunk)
            size += len(chunk)
            patience.deadline = anyio.current_time() + _SILENCE
    return chunks, False


async def _next(body: AsyncIterator[bytes]) -> bytes | None:
    with _patience():
        return await anext(body, None)


@contextmanager
def _patience() -> Iterator[anyio.CancelScope]:
    """Raises TooSlow where what is done in it waits for too long."""
    try:
        with anyio.fail_after(_SILENCE) as scope:
            yield scope
    except TimeoutError:
        raise TooSlow(f"nothing came for {_SILENCE} seconds") from None


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


def _senders() -> anyio.CapacityLimiter:
    try:
        return _limiter.get()
    except LookupError:
        made = anyio.CapacityLimiter(_SENDERS)
        _limiter.set(made)
        return made
