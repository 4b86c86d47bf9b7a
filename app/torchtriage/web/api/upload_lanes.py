"""Where bodies of requests are worked on: whole ones only, so that no sender holds a thread, and in lanes, so that what
takes long does not hold up what is done at once (decisions/0025).
"""

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

_PATIENCE = 20.0  # seconds that a body waits for its turn: senders do not wait for ever
_WORKING = 2  # small bodies that are read and compressed at once; more only take Python's lock from one another
_SECONDS, _PACE = 5.0, 20 << 20  # of the processor that any log may take, and bytes for which it may take one more


class _Lane(NamedTuple):
    """So many bodies are worked on here at the same time. One that takes more bytes, or more seconds of the processor,
    begins again in the next lane."""

    places: int
    bytes: float
    seconds: float


_LANES = (_Lane(16, SMALL, 0.05), _Lane(2, 16 << 20, 0.5), _Lane(1, float("inf"), float("inf")))


class _Outgrown(Exception):
    """The work takes more than its lane gives."""


class Watch:
    """What the work on one body has taken so far. It is told of each piece that was read or unpacked. `turn` is held
    while that goes on, and not while the disk is waited for."""

    def __init__(self, lane: _Lane, intake: Intake) -> None:
        self._lane, self._intake = lane, intake
        self.turn: AbstractContextManager[object] = intake.working if lane is _LANES[0] else nullcontext()
        self._bytes, self._began = 0, time.thread_time()

    def __call__(self, size: int) -> None:
        """Raises LogTooLarge, Stopping, and what makes `Intake.run` begin again."""
        self._bytes += size
        seconds = time.thread_time() - self._began
        if self._intake.stopped:
            raise Stopping
        if self._bytes > self._lane.bytes or seconds > self._lane.seconds:
            raise _Outgrown
        if seconds > _SECONDS + self._bytes / _PACE:
            told = f"{seconds:.1f} s were not enough to unpack this log and remove its secrets"
            raise LogTooLarge(told, seconds=round(seconds, 1), bytes=self._bytes)


class Intake:
    """All the bodies that a server receives and works on. Threads start when they are needed."""

    def __init__(self, spools: Spools) -> None:
        self.spools = spools
        self.stopped = False
        self.working = threading.BoundedSemaphore(_WORKING)
        self._turns = [asyncio.Semaphore(lane.places) for lane in _LANES]
        # A lane has threads of its own, as one that has worked on something large keeps memory for the next.
        self._threads = [ThreadPoolExecutor(lane.places, thread_name_prefix="body") for lane in _LANES]

    async def run(self, work: Callable[[Watch], Result], size: int) -> Result:
        """-> what `work` makes of a body of that size, in a thread. It may be begun more than once, and tells the watch
        of all that it reads and unpacks.

        Raises Busy, LogTooLarge, Stopping, and what `work` raises.
        """
        loop = asyncio.get_running_loop()
        for lane, turns, threads in zip(_LANES, self._turns, self._threads, strict=True):
            if size > lane.bytes:
                continue
            await _turn(turns)
            try:
                # The loop's own means: anyio's take three times as long, for each of the many small logs.
                return await loop.run_in_executor(threads, self._begin, work, lane)
            except _Outgrown:
                continue
            finally:
                turns.release()
        raise AssertionError("nothing outgrows the last lane")

    def _begin(self, work: Callable[[Watch], Result], lane: _Lane) -> Result:
        return work(Watch(lane, self))

    def stop(self) -> None:
        """Ends the work that is under way, as far as it asks its watch."""
        self.stopped = True
        for threads in self._threads:
            threads.shutdown(wait=False, cancel_futures=True)
        self.spools.stop()


async def _turn(turns: asyncio.Semaphore) -> None:
    try:
        async with asyncio.timeout(_PATIENCE):
            await turns.acquire()
    except TimeoutError:
        raise Busy(f"busy receiving other logs for {_PATIENCE:g} seconds") from None
