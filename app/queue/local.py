"""A queue in this process: ids of incidents in, each worked by one of a few threads.

It may forget: what is to be done stands in the database, and is put in again from there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from sqlalchemy import event
from sqlalchemy.orm import Session

from app.queue.processes import LARGE


class LocalQueue:
    """Give it what to do with an id; `work` says itself what went wrong. Large logs do not hold up the others."""

    def __init__(self, work: Callable[[str], None], threads: int) -> None:
        self._work = work
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="triage")
        self._large = ThreadPoolExecutor(max(1, threads - 1), thread_name_prefix="triage-large")
        self._under_way: dict[str, Future[None]] = {}
        self._changing = threading.Lock()
        self._stopping = False

    def put(self, session: Session, incident_id: str, size: int) -> None:
        """Once the session's transaction is committed, the id is in the queue. `size` is its log's, in bytes."""
        # Not before: who works on it must find it.
        event.listen(session, "after_commit", lambda _: self._submit(incident_id, size), once=True)

    def find(self, incident_id: str) -> Future[None] | None:
        """-> what ends when the work on this id has; None where it has, or never began."""
        return self._under_way.get(incident_id)

    def start(self) -> None:
        """It works from the first id on."""

    def stop(self) -> None:
        """Lets what is being worked on end, and forgets what waits."""
        with self._changing:
            self._stopping = True
        for pool in (self._pool, self._large):
            pool.shutdown(wait=True, cancel_futures=True)

    def _submit(self, incident_id: str, size: int) -> None:
        with self._changing:
            if self._stopping or incident_id in self._under_way:
                return
            pool = self._large if size >= LARGE else self._pool
            future = self._under_way[incident_id] = pool.submit(self._work, incident_id)
        future.add_done_callback(lambda _: self._under_way.pop(incident_id, None))
