"""A pool of processes for bulk work: each within a limit of memory, none left over when its owner dies."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager


@contextmanager
def process_pool(count: int, memory: int) -> Iterator[ProcessPoolExecutor]:
    """`count` processes of at most `memory` bytes each; what still waits when this is left is given up."""
    # spawn: a fork of a process with threads can hang.
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _prepare, (memory,))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare(memory: int) -> None:
    """What runs first in each process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes of a terminal; the owner ends them
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    threading.Thread(target=_end_with_owner, daemon=True).start()


def _end_with_owner() -> None:
    owner = multiprocessing.parent_process()
    assert owner is not None
    owner.join()
    os._exit(1)
