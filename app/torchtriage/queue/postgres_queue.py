"""A queue in Postgres that many processes on many machines share. Each id is handled by one of them.

An id's job is committed with the transaction that adds it. The jobs of a killed process go to others when its heartbeat
has been missing for a while.
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
_ENDING = 20  # seconds that running jobs may take to end


class PostgresQueue:
    """Ids can be put at any time. This process works on them from `start` to `stop`, as do other processes with this
    database."""

    def __init__(
        self,
        address: dict[str, Any],
        work: Callable[[str], None],
        ended: Callable[[list[str]], Iterable[str]],
        threads: int,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        """`address` has psycopg's connection parameters. `work` raises if an id must be tried again. `ended` returns
        those of a list of ids that have ended. `beat` is called every few seconds while the queue works."""
        logging.getLogger("procrastinate").setLevel(logging.WARNING)  # it logs every job, and the services do so, too
        self._jobs = procrastinate.App(connector=procrastinate.SyncPsycopgConnector())  # never opened, see `put`
        self._working = (address, work, threads, beat)
        self._answers = CompletionEvents(ended)
        self._running: tuple[threading.Thread, Worker] | None = None

    def put(self, session: Session, waiting: Sequence[tuple[str, int]]) -> None:
        """Queues the ids when the session's transaction is committed. Each comes with the size of its log in bytes.

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
            session.connection().invalidate()  # this server cannot write now; the next transaction connects again
            raise StorageUnavailable("cannot write to the queue; try again later") from error

    def find(self, incident_id: str) -> Future[None] | None:
        """Returns a future that ends when this id's work has ended, in whichever process."""
        return self._answers.wait_for(incident_id)

    def start(self) -> None:
        """Starts working through the queue in threads of this process."""
        started: Future[Worker] = Future()

        async def run() -> None:
            worker = Worker(*self._working)
            started.set_result(worker)
            await worker.run()

        def live() -> None:
            try:
                asyncio.run(run())
            finally:
                started.cancel()  # so that nobody waits for a worker that died before it began

        # A daemon, because it never ends if the database hangs: see `stop`.
        thread = threading.Thread(target=live, name="queue", daemon=True)
        thread.start()
        self._running = thread, started.result()

    def release(self, incident_id: str) -> None:
        """Called by this id's work when only its result is left to store, so that another job can begin."""
        if self._running is not None:
            with suppress(RuntimeError):  # the worker is dead
                self._running[1].release(incident_id)

    def is_dead(self) -> bool:
        """Returns whether the worker was started and not stopped, but has died."""
        return self._running is not None and not self._running[0].is_alive()

    def stop(self) -> None:
        """Waits for running jobs to end. The rest, and jobs that do not end in time, are left to other processes."""
        if self._running is not None:
            thread, worker = self._running
            with suppress(RuntimeError):  # the worker is dead
                worker.request_stop()
            thread.join(_ENDING)
            if thread.is_alive():
                log.warning("the queue did not stop within %d seconds; its jobs go to other processes", _ENDING)
            self._running = None
        self._answers.close()
