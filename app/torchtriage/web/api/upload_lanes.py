"""Processes request bodies in lanes, by size, so that large ones do not delay small ones (decisions/0025). Only
complete bodies are processed, so that no slow sender blocks a thread."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, TypeVar

from torchtriage.errors import LogTooLarge
from torchtriage.web.api.request_spool import SMALL, Spools
from torchtriage.web.errors import Busy, Stopping

Result = TypeVar("Result")

_TIMEOUT = 20.0  # seconds that a body waits for its turn, because clients do not wait forever
# Small bodies that are read and compressed at the same time. More would only compete for Python's global lock.
_WORKING = 2
_SECONDS, _PACE = 5.0, 20 << 20  # CPU seconds that any log may take, and bytes per additional second


class _Lane(NamedTuple):
    """Up to `places` bodies are processed in this lane at the same time. A body that needs more bytes or CPU seconds
    starts again in the next lane."""

    places: int
    bytes: float
    seconds: float


_LANES = (_Lane(16, SMALL, 0.05), _Lane(2, 16 << 20, 0.5), _Lane(1, float("inf"), float("inf")))


class _LaneExceeded(Exception):
    """The work exceeds the limits of its lane."""


class Watch:
    """Measures the work on one body. It is called for each piece that was read or unpacked. `turn` is held during this
    work, and not while waiting for the disk."""

    def __init__(self, lane: _Lane, intake: Intake) -> None:
        self._lane, self._intake = lane, intake
        self.turn: AbstractContextManager[object] = intake.working if lane is _LANES[0] else nullcontext()
        self._bytes, self._began = 0, time.thread_time()

    def __call__(self, size: int) -> None:
        """Raises LogTooLarge or Stopping, or makes `Intake.run` start again in the next lane."""
        self._bytes += size
        seconds = time.thread_time() - self._began
        if self._intake.stopped:
            raise Stopping
        if self._bytes > self._lane.bytes or seconds > self._lane.seconds:
            raise _LaneExceeded
        if seconds > _SECONDS + self._bytes / _PACE:
            problem = f"{seconds:.1f} s were not enough to unpack this log and remove its secrets"
            raise LogTooLarge(problem, seconds=round(seconds, 1), bytes=self._bytes)


class Intake:
    """All request bodies that a server receives and processes. Threads start when they are needed."""

    def __init__(self, spools: Spools) -> None:
        self.spools = spools
        self.stopped = False
        self.working = threading.BoundedSemaphore(_WORKING)
        self._turns = [asyncio.Semaphore(lane.places) for lane in _LANES]
        # Each lane has its own threads, because a thread that processed a large body keeps memory for the next one.
        self._threads = [ThreadPoolExecutor(lane.places, thread_name_prefix="body") for lane in _LANES]

    async def run(self, work: Callable[[Watch], Result], size: int) -> Result:
        """Runs `work` on a body of `size` bytes in a thread and returns its result. `work` may be started more than
        once, and must call the watch for all that it reads and unpacks.

        Raises Busy, LogTooLarge, Stopping, and whatever `work` raises.
        """
        loop = asyncio.get_running_loop()
        for lane, turns, threads in zip(_LANES, self._turns, self._threads, strict=True):
            if size > lane.bytes:
                continue
            await _turn(turns)
            try:
                # run_in_executor takes a third of the time of anyio's functions, which matters for many small logs
                return await loop.run_in_executor(threads, self._begin, work, lane)
            except _LaneExceeded:
                continue
            finally:
                turns.release()
        raise AssertionError("nothing outgrows the last lane")

    def _begin(self, work: Callable[[Watch], Result], lane: _Lane) -> Result:
        return work(Watch(lane, self))

    def stop(self) -> None:
        """Ends running work at its next call of the watch, and starts no more."""
        self.stopped = True
        for threads in self._threads:
            threads.shutdown(wait=False, cancel_futures=True)
        self.spools.stop()


async def _turn(turns: asyncio.Semaphore) -> None:
    try:
        async with asyncio.timeout(_TIMEOUT):
            await turns.acquire()
    except TimeoutError:
        raise Busy(f"busy receiving other logs for {_TIMEOUT:g} seconds") from None
