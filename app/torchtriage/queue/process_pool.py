"""A pool of processes for bulk work, each with a memory limit. They end when their owner dies.

If a process dies, only its own call fails, and the next call gets a new process.
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
    """Arguments and results of `submit` must be picklable. Its future raises CallFailed if the process died."""

    def __init__(self, count: int, memory: int) -> None:
        """`memory` is the limit of each process in bytes."""
        self._processes = SubprocessPool(_caller, (), count, None, memory)
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="pool")

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        return self._threads.submit(self._processes.call, function, arguments, named)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the processes after their calls have ended."""
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        self._processes.close()


@contextmanager
def process_pool(count: int, memory: int) -> Iterator[ProcessPool]:
    """A pool of `count` processes with at most `memory` bytes each. At the end of the `with` block, waiting calls are
    cancelled."""
    pool = ProcessPool(count, memory)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _caller() -> Callable[..., Any]:
    """Runs in the new process. Ends it when its owner dies, because another run may then write to the same files."""
    threading.Thread(target=_exit_with_owner, daemon=True).start()
    return _call


def _call(function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return function(*arguments, **named)


def _exit_with_owner() -> None:
    owner = multiprocessing.parent_process()
    assert owner is not None
    owner.join()
    os._exit(1)
