"""A queue in Postgres that many processes on many machines work: ids of incidents in, each worked by one of them.

An id's job is committed with the transaction that puts it in. Jobs of a process that was killed go back to the others
when its heartbeat has been missing for a while.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import procrastinate
from procrastinate.exceptions import ConnectorException
from sqlalchemy.orm import Session

from torchtriage.errors import StorageUnavailable
from torchtriage.queue.completion_events import CompletionEvents
from torchtriage.queue.postgres_worker import LARGE_LOGS, SMALL_LOGS, Worker
from torchtriage.queue.subprocess_calls import LARGE

log = logging.getLogger(__name__)
_TASK = "triage"
_ENDING = 20  # seconds for the jobs under way to end


class PostgresQueue:
    """Put ids in at once; they are worked here from `start` to `stop`, and by anyone who else works this database."""

    def __init__(
        self,
        address: dict[str, Any],
        work: Callable[[str], None],
        ended: Callable[[list[str]], Iterable[str]],
        threads: int,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        """`address` is what psycopg connects to. `work` raises where an id must be tried again; `ended` says which ids
        of a list have ended. `beat` is called every few seconds for as long as the queue is worked.
        """
        logging.getLogger("procrastinate").setLevel(logging.WARNING)  # it reports every job, and services do too
        self._jobs = procrastinate.App(connector=procrastinate.SyncPsycopgConnector())  # never opened: see `put`
        self._working = (address, work, threads, beat)
        self._answers = CompletionEvents(ended)
        self._running: tuple[threading.Thread, Worker] | None = None

    def put(self, session: Session, waiting: Sequence[tuple[str, int]]) -> None:
        """Once the session's transaction is committed, the ids are in the queue, each with the bytes of its log.

        Raises StorageUnavailable.
        """
        jobs = [
            self._jobs.configure_task(
                _TASK, queue=LARGE_LOGS if size >= LARGE else SMALL_LOGS, queueing_lock=incident_id
            ).make_new_job(incident=incident_id)
            for incident_id, size in waiting
        ]
        if not jobs:
            return
        try:
            self._jobs.job_manager.batch_defer_jobs(jobs, session.connection().connection.driver_connection)
        except ConnectorException as error:
            session.connection().invalidate()  # whichever server cannot write now, the next one asks another
            raise StorageUnavailable("cannot write to the queue; try again later") from error

    def find(self, incident_id: str) -> Future[None] | None:
        """-> what ends when the work on this id has, wherever it is done."""
        return self._answers.wait_for(incident_id)

    def start(self) -> None:
        """Begins to work the queue, in threads of this process."""
        started: Future[Worker] = Future()

        async def run() -> None:
            worker = Worker(*self._working)
            started.set_result(worker)
            await worker.run()

        def live() -> None:
            try:
                asyncio.run(run())
            finally:
                started.cancel()  # so that nobody waits for what died before it began

        # A daemon, as a database that stands still may never let it end: see `stop`.
        thread = threading.Thread(target=live, name="queue", daemon=True)
        thread.start()
        self._running = thread, started.result()

    def release(self, incident_id: str) -> None:
        """Called by the work on this id, which only has to keep what it found: its place is another's from here on."""
        if self._running is not None:
            with suppress(RuntimeError):  # it is dead
                self._running[1].release(incident_id)

    def is_dead(self) -> bool:
        """-> whether nothing works it here though it was started and nobody stopped it."""
        return self._running is not None and not self._running[0].is_alive()

    def stop(self) -> None:
        """Lets what is being worked on end; the rest is left to others, and what does not end in time as well."""
        if self._running is not None:
            thread, worker = self._running
            with suppress(RuntimeError):  # it is dead
                worker.begin_to_stop()
            thread.join(_ENDING)
            if thread.is_alive():
                log.warning("the queue did not stop within %d seconds; its jobs go to other processes", _ENDING)
            self._running = None
        self._answers.close()
