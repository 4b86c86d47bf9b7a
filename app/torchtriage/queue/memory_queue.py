"""A queue in this process: ids of incidents in, each worked by one of a few threads.

It may forget: what must be done is in the database, and is put in again from there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from sqlalchemy import event
from sqlalchemy.orm import Session

from torchtriage.queue.subprocess_calls import LARGE, places_of_large


class MemoryQueue:
    """Give it what to do with an id; `work` says itself what went wrong. Large logs do not hold up the others."""

    def __init__(self, work: Callable[[str], None], threads: int) -> None:
        self._work = work
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="triage")
        self._large = ThreadPoolExecutor(places_of_large(threads), thread_name_prefix="triage-large")
        self._under_way: dict[str, Future[None]] = {}
        self._again: dict[str, int] = {}  # put in while under way: the bytes of the log
        self._changing = threading.Lock()
        self._stopping = False

    def put(self, session: Session, waiting: Sequence[tuple[str, int]]) -> None:
        """Once the session's transaction is committed, the ids are in the queue, each with the bytes of its log."""
        # Not before: who works on one must find it.
        event.listen(session, "after_commit", lambda _: self._submit(waiting), once=True)

    def find(self, incident_id: str) -> Future[None] | None:
        """-> what ends when the work on this id has; None where it has, or never began."""
        return self._under_way.get(incident_id)

    def start(self) -> None:
        """It works from the first id on."""

    def release(self, incident_id: str) -> None:
        """Does nothing: a place here is a thread, which the work has until it ends."""

    def is_dead(self) -> bool:
        """-> False: what breaks in a thread of a pool ends no more than its own work."""
        return False

    def stop(self) -> None:
        """Lets what is being worked on end, and forgets what waits."""
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
                    self._again[incident_id] = size  # the work may have looked for the last time
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
