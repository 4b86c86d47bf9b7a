"""Works the jobs that are in Postgres: an address in, each job done in a thread of this process.

It lives as long as the process. What is in hand outlives the loss of the database: its end is told when that is back.
Jobs and their tables are procrastinate's; why its own worker is not used is in decisions/0023.
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
from torchtriage.queue.subprocess_calls import places_of_large

log = logging.getLogger(__name__)
SMALL_LOGS, LARGE_LOGS = "small", "large"  # procrastinate's queues
_QUEUES = (SMALL_LOGS, LARGE_LOGS)
_HEARTBEAT = 5  # seconds
_DEAD = 30  # seconds without a heartbeat after which others take over
_FORGOTTEN = 3600  # seconds without one after which a process is struck off the list
_LOOK = 10  # seconds between two looks for jobs that nobody has in hand
_POLL = 5  # seconds between two looks for new jobs, of which notifications tell sooner
_SOON, _AGAIN = 1, 5  # seconds before a lost database is tried again, the first time and later; and a job that failed
_GATHERING = 0.05  # seconds in which jobs end that are deleted together
_CONNECTIONS = 4  # besides the one that listens
_FREE = 10  # seconds to wait for one of them
_ADOPT = """
    UPDATE procrastinate_jobs SET worker_id = %(worker)s
    WHERE status = 'doing' AND id = ANY(%(ids)s::bigint[]) AND (worker_id IS NULL OR worker_id = %(before)s)
"""
# As procrastinate's own function for one job takes it, for several: one statement, of jobs without a `lock`.
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


class Places:
    """How many jobs of one queue are in hand at a time."""

    def __init__(self, count: int) -> None:
        self._count = self._free = count
        self._some = asyncio.Event()

    async def take(self) -> int:
        """-> all that are free, once half of them are: one statement then fills several, while the jobs of the other
        half keep the engines busy."""
        while 2 * self._free < self._count:
            self._some.clear()
            await self._some.wait()
        taken, self._free = self._free, 0
        return taken

    def give(self, places: int) -> None:
        self._free += places
        self._some.set()


class Worker:
    """Everything but `begin_to_stop` and `release` belongs to one event loop."""

    def __init__(
        self, address: dict[str, Any], work: Callable[[str], None], threads: int, beat: Callable[[], None]
    ) -> None:
        """`work` raises where an id must be tried again. `beat` is called for as long as all is well."""
        logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # what it warns of is told here, once
        self._address, self._work, self._beat = address, work, beat
        self._loop = asyncio.get_running_loop()
        self._places = {SMALL_LOGS: Places(threads), LARGE_LOGS: Places(places_of_large(threads))}
        self._held: dict[str, Places] = {}  # by the incident; two jobs about one have one place
        self._news = {queue: asyncio.Event() for queue in _QUEUES}
        # Twice as many as have a place can keep what they found: where the database is slow, no more are taken.
        self._threads = ThreadPoolExecutor(4 * threads, thread_name_prefix="triage")
        self._stopping = asyncio.Event()
        self._under_way: dict[int, asyncio.Future[bool]] = {}  # by the job's id
        self._ended: dict[int, bool] = {}  # whether it must be tried again, until the database knows
        self._some_ended = asyncio.Event()
        self._number: int | None = None  # under which the database knows this process
        self._well = False

    async def run(self) -> None:
        """Works until it is to stop, and lets what is under way end."""
        while not self._stopping.is_set():
            try:
                await self._round()
            except Exception as error:  # noqa: BLE001  whatever it is, the queue is worked again once it has passed
                pause = _SOON if self._well else _AGAIN
                self._well = False
                log.error("the queue is unavailable, trying again in %d s: %s", pause, _line(error))
                await _within(pause, self._stopping.wait())
        await self._all_ended()
        self._threads.shutdown(wait=False)

    def begin_to_stop(self) -> None:
        """Takes nothing new."""
        self._loop.call_soon_threadsafe(self._stopping.set)

    def release(self, incident_id: str) -> None:
        """Lets another have the place of this one, whose work goes on."""
        self._loop.call_soon_threadsafe(self._release, incident_id)

    async def _round(self) -> None:
        """Works with connections of its own until it is to stop; raises what the database fails with."""
        async with await psycopg.AsyncConnection.connect(**self._address):
            pass  # a pool would try for long, and not say what is wrong
        pool = AsyncConnectionPool(
            kwargs=self._address, min_size=0, max_size=_CONNECTIONS, timeout=_FREE, open=False, configure=_not_durable
        )
        async with pool:
            app = procrastinate.App(connector=procrastinate.PsycopgConnector())
            await app.open_async(pool)
            number = await self._register(app)
            async with asyncio.TaskGroup() as group:
                others = [
                    group.create_task(self._stay(app, number)),
                    group.create_task(self._give_back(app, number)),
                    group.create_task(app.job_manager.listen_for_jobs(on_notification=self._told, queues=_QUEUES)),
                ]
                telling = group.create_task(self._tell_ends(app))
                takers = [group.create_task(self._take(app, number, queue)) for queue in _QUEUES]
                await self._stopping.wait()
                await _ended(*takers)
                await self._all_ended()
                await _ended(telling)
                await self._tell(app)
                await _ended(*others)
            await app.job_manager.unregister_worker(number)

    async def _register(self, app: procrastinate.App) -> int:
        """-> the number of this round; what is in hand goes on under it, what else stood under the last is nobody's."""
        number = await app.job_manager.register_worker()
        in_hand = list(self._in_hand())
        await app.connector.execute_query_async(_ADOPT, worker=number, ids=in_hand, before=self._number)
        if self._number is not None:
            await app.job_manager.unregister_worker(self._number)
        self._number = number
        return number

    async def _stay(self, app: procrastinate.App, number: int) -> None:
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

    async def _told(self, *, channel: str, notification: Any) -> None:
        self._news[channel.rpartition("#")[2]].set()  # the channel ends with the queue's name

    def _begin(self, job_id: int, incident_id: str, places: Places) -> None:
        self._release(incident_id)
        self._held[incident_id] = places
        done = self._under_way[job_id] = self._loop.run_in_executor(self._threads, self._do, incident_id)
        done.add_done_callback(partial(self._end, job_id, incident_id))

    def _do(self, incident_id: str) -> bool:
        """-> whether it must be tried again."""
        try:
            self._work(incident_id)
        except TriageError as error:
            log.warning("incident %s is tried again: %s", incident_id, error.message)
            return True
        except Exception:  # one job that breaks must not end the queue
            log.exception("incident %s is tried again: it failed", incident_id)
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

    async def _tell_ends(self, app: procrastinate.App) -> None:
        while True:
            await self._tell(app)
            await self._some_ended.wait()
            await asyncio.sleep(_GATHERING)
            self._some_ended.clear()

    async def _tell(self, app: procrastinate.App) -> None:
        ended = dict(self._ended)
        done = [job_id for job_id, again in ended.items() if not again]
        if done:
            await app.connector.execute_query_async(_DONE, ids=done)
        for job_id in ended.keys() - done:
            await _retry(app, job_id, _AGAIN)
        for job_id in ended:
            del self._ended[job_id]

    async def _give_back(self, app: procrastinate.App, number: int) -> None:
        """Gives back the jobs of dead processes, and those of this one that it has not in hand.

        Where the connection was lost, the database may have given out a job of which nobody here knows. Where a process
        was not dead, two do the same work and the first is kept.
        """
        suspects: set[int] = set()
        while True:
            # After an outage nobody's heartbeat is young: who lives has the time to say so first.
            await asyncio.sleep(_LOOK)
            for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=_DEAD):
                if job.id is not None and job.id not in self._in_hand():
                    log.warning(
                        "incident %s goes to another process: its process is gone", job.task_kwargs.get("incident")
                    )
                    await _retry(app, job.id)
            held = {row["id"] for row in await app.connector.execute_query_all_async(_HELD, worker=number)}
            nobodys = held - self._in_hand()
            for job_id in nobodys & suspects:  # not those that are on their way here just now
                log.warning("job %d returned to the queue: it was not started", job_id)
                await _retry(app, job_id)
            suspects = nobodys
            await app.job_manager.prune_stalled_workers(_FORGOTTEN)

    def _in_hand(self) -> set[int]:
        return self._under_way.keys() | self._ended.keys()

    async def _all_ended(self) -> None:
        if self._under_way:
            await asyncio.wait(self._under_way.values())


async def _not_durable(connection: psycopg.AsyncConnection[Any]) -> None:
    """What a power loss takes away of the queue is done again; a sync for each job would cost more than most jobs."""
    await connection.execute("SET synchronous_commit = off")
    await connection.commit()


async def _retry(app: procrastinate.App, job_id: int, wait: float = 0) -> None:
    try:
        await app.job_manager.retry_job_by_id_async(job_id, datetime.now(UTC) + timedelta(seconds=wait))
    except UniqueViolation:  # there is another job for the same incident
        await app.connector.execute_query_async(_DONE, ids=[job_id])
    except ConnectorException as error:
        if not isinstance(error.__cause__, psycopg.errors.RaiseException):  # that is: another process was quicker
            raise


async def _ended(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def _within(seconds: float, what: Any) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(what, seconds)


def _line(error: BaseException) -> str:
    """-> what went wrong first, in a line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    error = error.__cause__ or error
    return str(error).strip().split("\n")[0] or type(error).__name__
