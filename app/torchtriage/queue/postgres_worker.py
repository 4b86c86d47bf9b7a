"""Runs the jobs of the Postgres queue in threads of this process.

It lives as long as the process. Running jobs survive an outage of the database: their end is recorded when it is back.
Jobs and tables are procrastinate's; decision 0023 says why its own worker is not used.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import procrastinate
import psycopg
from procrastinate.exceptions import ConnectorException, UniqueViolation
from psycopg_pool import AsyncConnectionPool

from torchtriage.errors import TriageError
from torchtriage.queue.subprocess_calls import slots_for_large_logs

log = logging.getLogger(__name__)
SMALL_LOGS, LARGE_LOGS = "small", "large"  # procrastinate's queues
_QUEUES = (SMALL_LOGS, LARGE_LOGS)
_HEARTBEAT = 5  # seconds
_DEAD = 30  # seconds without a heartbeat after which others take over the jobs
_FORGOTTEN = 3600  # seconds without a heartbeat after which a process is removed from the list
_LOOK = 10  # seconds between two checks for jobs that no process runs
_POLL = 5  # seconds between two checks for new jobs; notifications are usually faster
# Seconds before reconnecting, the first time and later; _AGAIN also before a failed job is tried again.
_SOON, _AGAIN = 1, 5
_GATHERING = 0.05  # seconds for which finished jobs are collected and then deleted together
_CONNECTIONS = 4  # without the one that listens
_FREE = 10  # seconds to wait for a free connection
_ADOPT = """
    UPDATE procrastinate_jobs SET worker_id = %(worker)s
    WHERE status = 'doing' AND id = ANY(%(ids)s::bigint[]) AND (worker_id IS NULL OR worker_id = %(before)s)
"""
# Like procrastinate's own function for one job, but takes several, all without a `lock`, in one statement.
_TAKE = """
    WITH found AS (
        SELECT id FROM procrastinate_jobs
        WHERE status = 'todo' AND queue_name = %(queue)s AND (scheduled_at IS NULL OR scheduled_at <= now())
        ORDER BY priority DESC, id LIMIT %(most)s FOR UPDATE SKIP LOCKED
    )
    UPDATE procrastinate_jobs AS job SET status = 'doing', worker_id = %(worker)s
    FROM found WHERE job.id = found.id RETURNING job.id, job.args
"""
_HELD = "SELECT id FROM procrastinate_jobs WHERE status = 'doing' AND worker_id = %(worker)s"
_DONE = "DELETE FROM procrastinate_jobs WHERE status = 'doing' AND id = ANY(%(ids)s::bigint[])"


class JobSlots:
    """Limits the number of running jobs of one queue."""

    def __init__(self, count: int) -> None:
        self._count = self._free = count
        self._some = asyncio.Event()

    async def take(self) -> int:
        """Waits until at least half of the places are free, and takes all free ones. So one statement fills several
        places, while the jobs in the others keep the engines busy."""
        while 2 * self._free < self._count:
            self._some.clear()
            await self._some.wait()
        taken, self._free = self._free, 0
        return taken

    def give(self, places: int) -> None:
        self._free += places
        self._some.set()


class Worker:
    """All methods except `request_stop` and `release` must be called from one event loop."""

    def __init__(
        self, address: dict[str, Any], work: Callable[[str], None], threads: int, beat: Callable[[], None]
    ) -> None:
        """`work` raises if an id must be tried again. `beat` is called while the queue works."""
        logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # this class logs these problems itself, once
        self._address, self._work, self._beat = address, work, beat
        self._loop = asyncio.get_running_loop()
        self._places = {SMALL_LOGS: JobSlots(threads), LARGE_LOGS: JobSlots(slots_for_large_logs(threads))}
        self._held: dict[str, JobSlots] = {}  # by incident; two jobs of one incident share a place
        self._news = {queue: asyncio.Event() for queue in _QUEUES}
        # More threads than places, for jobs that only have to store their result. If the database is slow, the threads
        # run out and no more jobs begin.
        self._threads = ThreadPoolExecutor(4 * threads, thread_name_prefix="triage")
        self._stopping = asyncio.Event()
        self._under_way: dict[int, asyncio.Future[bool]] = {}  # by the job's id
        self._ended: dict[int, bool] = {}  # by the job's id: whether to try again; kept until the database has it
        self._some_ended = asyncio.Event()
        self._number: int | None = None  # this process's number in the database
        self._well = False

    async def run(self) -> None:
        """Works until `request_stop`, and then waits for running jobs to end."""
        while not self._stopping.is_set():
            try:
                await self._round()
            except Exception as error:  # noqa: BLE001  after any error, the queue must work again later
                pause = _SOON if self._well else _AGAIN
                self._well = False
                log.error("the queue is unavailable, trying again in %d s: %s", pause, _line(error))
                await _within(pause, self._stopping.wait())
        await self._all_ended()
        self._threads.shutdown(wait=False)

    def request_stop(self) -> None:
        """Takes no new jobs."""
        self._loop.call_soon_threadsafe(self._stopping.set)

    def release(self, incident_id: str) -> None:
        """Frees the job's place, so that another can begin, while this one continues."""
        self._loop.call_soon_threadsafe(self._release, incident_id)

    async def _round(self) -> None:
        """Works with new connections until it is told to stop. Raises the database's errors."""
        async with await psycopg.AsyncConnection.connect(**self._address):
            pass  # a pool would retry for long and not report the error
        pool = AsyncConnectionPool(
            kwargs=self._address, min_size=0, max_size=_CONNECTIONS, timeout=_FREE, open=False, configure=_not_durable
        )
        async with pool:
            app = procrastinate.App(connector=procrastinate.PsycopgConnector())
            await app.open_async(pool)
            number = await self._register(app)
            async with asyncio.TaskGroup() as group:
                others = [
                    group.create_task(self._work_until_stopped(app, number)),
                    group.create_task(self._return_jobs(app, number)),
                    group.create_task(
                        app.job_manager.listen_for_jobs(on_notification=self._on_notification, queues=_QUEUES)
                    ),
                ]
                recording = group.create_task(self._record_ends(app))
                takers = [group.create_task(self._take(app, number, queue)) for queue in _QUEUES]
                await self._stopping.wait()
                await _ended(*takers)
                await self._all_ended()
                await _ended(recording)
                await self._record(app)
                await _ended(*others)
            await app.job_manager.unregister_worker(number)

    async def _register(self, app: procrastinate.App) -> int:
        """Registers this process and returns its new number. Its running jobs continue under this number; other jobs
        under its old number become nobody's."""
        number = await app.job_manager.register_worker()
        in_hand = list(self._running_jobs())
        await app.connector.execute_query_async(_ADOPT, worker=number, ids=in_hand, before=self._number)
        if self._number is not None:
            await app.job_manager.unregister_worker(self._number)
        self._number = number
        return number

    async def _work_until_stopped(self, app: procrastinate.App, number: int) -> None:
        while True:
            await app.job_manager.update_heartbeat(number)
            self._well = True
            self._beat()
            await asyncio.sleep(_HEARTBEAT)

    async def _take(self, app: procrastinate.App, number: int, queue: str) -> None:
        places, news = self._places[queue], self._news[queue]
        while True:
            free = await places.take()
            news.clear()
            jobs = []
            try:
                jobs = await app.connector.execute_query_all_async(_TAKE, queue=queue, worker=number, most=free)
            finally:
                places.give(free - len(jobs))
            for job in jobs:
                self._begin(job["id"], str(job["args"]["incident"]), places)
            if not jobs:
                await _within(_POLL, news.wait())

    async def _on_notification(self, *, channel: str, notification: Any) -> None:
        self._news[channel.rpartition("#")[2]].set()  # the channel's name ends with the queue's name

    def _begin(self, job_id: int, incident_id: str, places: JobSlots) -> None:
        self._release(incident_id)
        self._held[incident_id] = places
        done = self._under_way[job_id] = self._loop.run_in_executor(self._threads, self._run_job, incident_id)
        done.add_done_callback(partial(self._end, job_id, incident_id))

    def _run_job(self, incident_id: str) -> bool:
        """Returns whether the id must be tried again."""
        try:
            self._work(incident_id)
        except TriageError as error:
            log.warning("incident %s will be tried again: %s", incident_id, error.message)
            return True
        except Exception:  # an error in one job must not end the queue
            log.exception("incident %s will be tried again: it failed", incident_id)
            return True
        return False

    def _release(self, incident_id: str) -> None:
        if places := self._held.pop(incident_id, None):
            places.give(1)

    def _end(self, job_id: int, incident_id: str, done: asyncio.Future[bool]) -> None:
        self._release(incident_id)
        del self._under_way[job_id]
        self._ended[job_id] = done.cancelled() or done.result()
        self._some_ended.set()

    async def _record_ends(self, app: procrastinate.App) -> None:
        while True:
            await self._record(app)
            await self._some_ended.wait()
            await asyncio.sleep(_GATHERING)
            self._some_ended.clear()

    async def _record(self, app: procrastinate.App) -> None:
        ended = dict(self._ended)
        done = [job_id for job_id, again in ended.items() if not again]
        if done:
            await app.connector.execute_query_async(_DONE, ids=done)
        for job_id in ended.keys() - done:
            await _retry(app, job_id, _AGAIN)
        for job_id in ended:
            del self._ended[job_id]

    async def _return_jobs(self, app: procrastinate.App, number: int) -> None:
        """Returns the jobs of dead processes to the queue, and jobs of this process that are not running here.

        After a lost connection, the database may have assigned a job that this process never received. If a process was
        not really dead, both do the work and the first result is stored.
        """
        suspects: set[int] = set()
        while True:
            # After an outage all heartbeats are old. First wait, so that living processes can send one.
            await asyncio.sleep(_LOOK)
            for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=_DEAD):
                if job.id is not None and job.id not in self._running_jobs():
                    log.warning(
                        "incident %s goes to another process: its process is gone", job.task_kwargs.get("incident")
                    )
                    await _retry(app, job.id)
            held = {row["id"] for row in await app.connector.execute_query_all_async(_HELD, worker=number)}
            nobodys = held - self._running_jobs()
            for job_id in nobodys & suspects:  # in two checks, so that jobs on their way here do not count
                log.warning("job %d returned to the queue: it was not started", job_id)
                await _retry(app, job_id)
            suspects = nobodys
            await app.job_manager.prune_stalled_workers(_FORGOTTEN)

    def _running_jobs(self) -> set[int]:
        return self._under_way.keys() | self._ended.keys()

    async def _all_ended(self) -> None:
        if self._under_way:
            await asyncio.wait(self._under_way.values())


async def _not_durable(connection: psycopg.AsyncConnection[Any]) -> None:
    """Turns off synced commits: queue changes that a power loss undoes are repeated, and a sync per job would cost more
    than most jobs."""
    await connection.execute("SET synchronous_commit = off")
    await connection.commit()


async def _retry(app: procrastinate.App, job_id: int, wait: float = 0) -> None:
    try:
        await app.job_manager.retry_job_by_id_async(job_id, datetime.now(UTC) + timedelta(seconds=wait))
    except UniqueViolation:  # another job for the same incident exists
        await app.connector.execute_query_async(_DONE, ids=[job_id])
    except ConnectorException as error:
        # A RaiseException means that another process was faster.
        if not isinstance(error.__cause__, psycopg.errors.RaiseException):
            raise


async def _ended(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def _within(seconds: float, what: Any) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(what, seconds)


def _line(error: BaseException) -> str:
    """Returns the first line of the original error."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    error = error.__cause__ or error
    return str(error).strip().split("\n")[0] or type(error).__name__
