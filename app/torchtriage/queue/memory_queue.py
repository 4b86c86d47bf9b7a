"""A queue in this process: a few threads work through ids of incidents.

It can lose ids, because the database has them, too, and they are queued again from there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from sqlalchemy import event
from sqlalchemy.orm import Session

from torchtriage.queue.subprocess_calls import LARGE, slots_for_large_logs


class MemoryQueue:
    """`work` handles one id and reports its own errors. Large logs do not block the others."""

    def __init__(self, work: Callable[[str], None], threads: int) -> None:
        self._work = work
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="triage")
        self._large = ThreadPoolExecutor(slots_for_large_logs(threads), thread_name_prefix="triage-large")
        self._under_way: dict[str, Future[None]] = {}
        self._again: dict[str, int] = {}  # ids put again while running, with the bytes of their logs
        self._changing = threading.Lock()
        self._stopping = False

    def put(self, session: Session, waiting: Sequence[tuple[str, int]]) -> None:
        """Queues the ids when the session's transaction is committed. Each comes with the size of its log in bytes."""
        # Not earlier, because the worker must find the row.
        event.listen(session, "after_commit", lambda _: self._submit(waiting), once=True)

    def find(self, incident_id: str) -> Future[None] | None:
        """Returns a future that ends when this id's work has ended, or None if it is not queued or running."""
        return self._under_way.get(incident_id)

    def start(self) -> None:
        """Does nothing: the threads start with the first id."""

    def release(self, incident_id: str) -> None:
        """Does nothing: each work keeps its thread until it ends."""

    def is_dead(self) -> bool:
        """Returns False: an error in a pool's thread ends only its own work."""
        return False

    def stop(self) -> None:
        """Waits for running work to end, and drops the rest of the queue."""
        with self._changing:
            self._stopping = True
        for pool in (self._pool, self._large):
            pool.shutdown(wait=True, cancel_futures=True)

    def _submit(self, waiting: Sequence[tuple[str, int]]) -> None:
        for incident_id, size in waiting:
            with self._changing:
                if self._stopping:
                    return
                if incident_id in self._under_way:
                    self._again[incident_id] = size  # the running work may have read the incident before this change
                    continue
                pool = self._large if size >= LARGE else self._pool
                future = self._under_way[incident_id] = pool.submit(self._work, incident_id)
            future.add_done_callback(partial(self._ended, incident_id))

    def _ended(self, incident_id: str, _: Future[None]) -> None:
        with self._changing:
            self._under_way.pop(incident_id, None)
            size = self._again.pop(incident_id, None)
        if size is not None:
            self._submit([(incident_id, size)])
