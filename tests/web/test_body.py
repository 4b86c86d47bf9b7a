"""Senders who take their time: a body, chunk by chunk with pauses in between, by a clock that the test moves on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi import Request

from torchtriage.reading.unpack import Upload
from torchtriage.web.api.request_body import with_uploads
from torchtriage.web.api.request_spool import Spools
from torchtriage.web.api.upload_lanes import Intake
from torchtriage.web.errors import TooSlow

MB = 1 << 20
Receive = Callable[[], Awaitable[dict[str, Any]]]


class Hurried(asyncio.SelectorEventLoop):
    """Its time goes on by as much as somebody `skipped`."""

    skipped = 0.0

    def time(self) -> float:
        return super().time() + self.skipped


def received(chunks: list[bytes], pause: float) -> bytes:
    """Returns what came of a body whose chunks come after so many seconds each."""
    left = iter(chunks)

    async def receive() -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Hurried)
        loop.skipped += pause
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        chunk = next(left, None)
        return {"type": "http.request", "body": chunk or b"", "more_body": chunk is not None}

    def work(uploads: Iterator[Upload]) -> bytes:
        return b"".join(chunk for upload in uploads for chunk in upload.chunks)

    return read(receive, 64 * MB, work)


def read(receive: Receive, limit: int, work: Callable[[Iterator[Upload]], bytes]) -> bytes:
    """Returns what `work` makes of a body, on a loop of its own: a browser's tests leave theirs running in this thread."""

    async def taken() -> bytes:
        request = Request({"type": "http", "headers": []}, receive)
        return await with_uploads(request, Intake(Spools(Path)), limit, work)

    def run() -> bytes:
        with asyncio.Runner(loop_factory=Hurried) as runner:
            return runner.run(taken())

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run).result()


@pytest.mark.parametrize("before", [[], [bytes(MB)], [bytes(3 * MB)]], ids=["at once", "on disk", "with much before"])
@pytest.mark.parametrize(("drop", "pause"), [(b"x", 25), (b"x" * 1024, 10), (b"", 61)])
def test_a_sender_that_is_too_slow_is_not_waited_for(before: list[bytes], drop: bytes, pause: float) -> None:
    with pytest.raises(TooSlow, match="bytes a second arrived, for longer than 60 seconds"):
        received([*before, *[drop] * 1000], pause)


@pytest.mark.parametrize(("size", "pause"), [(4096, 3.5), (60_000, 3), (1100, 1), (MB, 3.8)])
def test_a_slow_sender_is_waited_for(size: int, pause: float) -> None:
    assert len(received([bytes(size)] * 60, pause)) == 60 * size


@pytest.mark.parametrize(("size", "pause"), [(60_000, 20), (MB, 20)])
def test_the_more_has_come_the_faster_it_has_to(size: int, pause: float) -> None:
    with pytest.raises(TooSlow):
        received([bytes(size)] * 60, pause)


def test_the_end_of_a_body_is_not_looked_for_twice() -> None:
    calls: list[Callable[..., Any]] = []

    async def receive() -> dict[str, Any]:
        assert not calls, "asked again after the end: what comes there is the next request's"
        calls.append(receive)
        return {"type": "http.request", "body": b"all of it", "more_body": False}

    told = read(receive, MB, lambda uploads: b"".join(chunk for upload in uploads for chunk in upload.chunks))
    assert told == b"all of it"
