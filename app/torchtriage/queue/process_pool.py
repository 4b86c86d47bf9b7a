"""A pool of processes for bulk work: each within a limit of memory, none left over when its owner dies.

One that dies ends nothing but its own call; the next call has another.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from torchtriage.queue.subprocess_calls import SubprocessPool


class ProcessPool(Executor):
    """`submit` takes what can travel to another process; its future raises CallFailed where that process died."""

    def __init__(self, count: int, memory: int) -> None:
        """`memory` is in bytes, of each process."""
        self._processes = SubprocessPool(_caller, (), count, None, memory)
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="pool")

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        return self._threads.submit(self._processes.call, function, arguments, named)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the processes once their calls have come back."""
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        self._processes.close()


@contextmanager
def process_pool(count: int, memory: int) -> Iterator[ProcessPool]:
    """`count` processes of at most `memory` bytes each; what still waits when this is left is given up."""
    pool = ProcessPool(count, memory)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _caller() -> Callable[..., Any]:
    """Made in the other process, which must not go on writing when another run has begun."""
    threading.Thread(target=_end_with_owner, daemon=True).start()
    return _call


def _call(function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return function(*arguments, **named)


def _end_with_owner() -> None:
    owner = multiprocessing.parent_process()
    assert owner is not None
    owner.join()
    os._exit(1)
