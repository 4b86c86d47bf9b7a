"""A queue in Postgres that many processes on many machines work: ids of incidents in, each worked by one of them.

An id's job is committed with the transaction that puts it in. Jobs of a process that was killed go back to the others
when its heartbeat has been missing for a while.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import procrastinate
from procrastinate.exceptions import ConnectorException
from sqlalchemy.engine import make_url
from sqlalchemy.orm import Session

from app.queue.answers import Answers
from app.queue.processes import LARGE

log = logging.getLogger(__name__)
_TASK = "triage"
_SMALL_LOGS, _LARGE_LOGS = "small", "large"  # procrastinate's queues
_HEARTBEAT = 5  # seconds
_DEAD = 30  # seconds without a heartbeat after which others take over
_LOOK = 10  # seconds between two looks for such jobs
_ENDING = 20  # seconds for the jobs under way to end
_AGAIN = 5  # seconds before a job that failed, or a lost connection, is tried again


class SharedQueue:
    """Put ids in at once; they are worked here from `start` to `stop`, and by whoever else works this database."""

    def __init__(
        self, url: str, work: Callable[[str], None], ended: Callable[[list[str]], Iterable[str]], threads: int
    ) -> None:
        """`work` raises where an id is to be tried again; `ended` says which ids of a list have ended."""
        logging.getLogger("procrastinate").setLevel(logging.WARNING)  # it tells of every job, and services do too
        address = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._threads = threads
        self._jobs = procrastinate.App(connector=procrastinate.SyncPsycopgConnector())  # never opened: see `put`
        self._app = procrastinate.App(
            connector=procrastinate.PsycopgConnector(conninfo=address, min_size=1, max_size=4, timeout=10)
        )
        self._app.task(name=_TASK, retry=procrastinate.RetryStrategy(wait=_AGAIN))(_taking_id(work))
        self._answers = Answers(ended)
        self._running: tuple[threading.Thread, asyncio.AbstractEventLoop, asyncio.Task[None]] | None = None

    def put(self, session: Session, waiting: Sequence[tuple[str, int]]) -> None:
        """Once the session's transaction is committed, the ids are in the queue, each with the bytes of its log."""
        jobs = [
            self._jobs.configure_task(
                _TASK, queue=_LARGE_LOGS if size >= LARGE else _SMALL_LOGS, queueing_lock=incident_id
            ).make_new_job(incident=incident_id)
            for incident_id, size in waiting
        ]
        if jobs:
            connection = session.connection().connection.driver_connection
            self._jobs.job_manager.batch_defer_jobs(jobs, connection)

    def find(self, incident_id: str) -> Future[None] | None:
        """-> what ends when the work on this id has, wherever it is done."""
        return self._answers.wait_for(incident_id)

    def start(self) -> None:
        """Begins to work the queue, in threads of this process."""
        started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = Future()

        async def run() -> None:
            task = asyncio.ensure_future(self._keep_working())
            loop = asyncio.get_running_loop()
            loop.set_default_executor(ThreadPoolExecutor(2 * self._threads, thread_name_prefix="triage"))
            started.set_result((loop, task))
            with suppress(asyncio.CancelledError):
                await task

        # A daemon, as procrastinate does not always end when it is asked to while it starts: see `stop`.
        thread = threading.Thread(target=lambda: asyncio.run(run()), name="queue", daemon=True)
        thread.start()
        self._running = (thread, *started.result())

    def stop(self) -> None:
        """Lets what is being worked on end; the rest is left to others, and what does not end in time as well."""
        if self._running is not None:
            thread, loop, task = self._running
            loop.call_soon_threadsafe(task.cancel)
            thread.join(_ENDING)
            if thread.is_alive():
                log.warning("the queue did not end within %d seconds; its jobs go to other processes", _ENDING)
            self._running = None
        self._answers.close()

    async def _keep_working(self) -> None:
        """A lost database ends procrastinate's workers; they are started anew until it is there again."""
        while True:
            problem = await self._work()
            log.error("the queue can't be worked now, trying again: %s", problem)
            await asyncio.sleep(_AGAIN)

    async def _work(self) -> str:
        """-> why it ended; what it was doing then has ended too."""
        try:
            async with self._app.open_async():
                large = max(1, self._threads - 1)  # as many large logs as leave one thread to the others
                parts = [
                    self._worker(_SMALL_LOGS, self._threads),
                    self._worker(_LARGE_LOGS, large),
                    self._hand_on(),
                ]
                return await _first_problem(parts)
        except ConnectorException as error:
            return _line(error)

    async def _worker(self, queue: str, count: int) -> None:
        await self._app.run_worker_async(
            queues=[queue],
            concurrency=count,
            delete_jobs="always",  # what there is to know of a job stands in its incident
            install_signal_handlers=False,
            update_heartbeat_interval=_HEARTBEAT,
            stalled_worker_timeout=_DEAD,
        )

    async def _hand_on(self) -> None:
        """Gives the jobs of dead processes back. Where one was not dead, two do the same work and the first is kept."""
        while True:
            for job in await self._app.job_manager.get_stalled_jobs(seconds_since_heartbeat=_DEAD):
                log.warning("incident %s goes to another process: its own is gone", job.task_kwargs.get("incident"))
                with suppress(ConnectorException):  # another process was quicker
                    await self._app.job_manager.retry_job(job)
            await asyncio.sleep(_LOOK)


async def _first_problem(parts: list[Coroutine[Any, Any, None]]) -> str:
    """Runs parts of which none should end -> why the first did, once all have."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    error = done.pop().exception()
    return _line(error) if error else "a worker ended"


def _taking_id(work: Callable[[str], None]) -> Callable[..., None]:
    def triage(incident: str) -> None:
        work(incident)

    return triage


def _line(error: BaseException) -> str:
    return str(error.__cause__ or error).strip().split("\n")[0]
