"""Two processes' queues on one real Postgres; what they would triage is written down instead."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from tests import postgres as servers
from tests.postgres import PostgresServer
from torchtriage.queue.postgres_queue import PostgresQueue
from torchtriage.queue.postgres_worker import JobSlots
from torchtriage.storage.database import Database, postgres_address
from torchtriage.storage.schema_upgrade import upgrade

pytestmark = pytest.mark.postgres
TIMEOUT = 60  # seconds; what is waited for takes parts of one


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    with postgres.database(migrated=True) as made:
        yield made


@contextmanager
def working(url: str, work: Callable[[str], None], started: bool = True) -> Iterator[PostgresQueue]:
    queue = PostgresQueue(postgres_address(url), work, lambda _: [], 2)
    if started:
        queue.start()
    try:
        yield queue
    finally:
        queue.stop()


def put(url: str, queue: PostgresQueue, *ids: str, size: int = 1) -> None:
    database = Database(url)
    with database.transaction() as session:
        queue.put(session, [(known, size) for known in ids])
    database.close()


def test_each_id_is_worked_once_by_one_of_many(url: str) -> None:
    done: list[str] = []
    all_done = threading.Event()

    def work(known: str) -> None:
        done.append(known)
        if len(done) >= 40:
            all_done.set()

    with working(url, work) as first, working(url, work):
        put(url, first, *map(str, range(40)))
        assert all_done.wait(TIMEOUT)
    assert sorted(done, key=int) == [str(number) for number in range(40)]


@pytest.mark.slow
def test_a_rolled_back_id_is_not_in_the_queue(url: str) -> None:
    done = threading.Event()
    worked: list[str] = []

    def work(known: str) -> None:
        worked.append(known)
        done.set()

    with working(url, work) as queue:
        database = Database(url)
        with database.transaction() as session:
            queue.put(session, [("1", 1)])
            session.rollback()
        database.close()
        put(url, queue, "2")
        assert done.wait(TIMEOUT)
    assert worked == ["2"]


def test_large_logs_leave_a_thread_to_the_others(url: str) -> None:
    held, done = threading.Event(), threading.Event()

    def work(known: str) -> None:
        if known == "small":
            done.set()
        else:
            held.wait(TIMEOUT)

    with working(url, work) as queue:
        put(url, queue, "1", "2", "3", size=1 << 30)
        put(url, queue, "small")
        assert done.wait(TIMEOUT)
        held.set()


def test_work_that_only_stores_its_result_frees_its_place(url: str) -> None:
    found, kept = threading.Semaphore(0), threading.Event()

    def work(known: str) -> None:
        queue.release(known)
        found.release()
        kept.wait(TIMEOUT)

    with working(url, work) as queue:
        put(url, queue, *map(str, range(6)))
        for _ in range(6):  # on two places
            assert found.acquire(timeout=TIMEOUT)
        kept.set()
        until_empty(url)


def test_several_places_are_filled_at_once() -> None:
    async def fill() -> list[int]:
        places = JobSlots(8)
        taken = [await places.take()]
        more = asyncio.ensure_future(places.take())
        for _ in range(4):
            assert not more.done()
            places.give(1)
            await asyncio.sleep(0)  # its turn, if it wants one
        return [*taken, await more]

    with ThreadPoolExecutor(1) as own:  # a browser's test in the same process leaves a loop to its thread
        assert own.submit(lambda: asyncio.run(fill())).result() == [8, 4]


def test_failed_work_is_tried_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchtriage.queue.postgres_worker._AGAIN", 0)
    monkeypatch.setattr("torchtriage.queue.postgres_worker._POLL", 0.2)
    tries: list[str] = []
    done = threading.Event()

    def work(known: str) -> None:
        tries.append(known)
        if len(tries) < 3:
            raise OSError("not now")
        done.set()

    with working(url, work) as queue:
        put(url, queue, "1")
        assert done.wait(TIMEOUT)
    assert tries == ["1"] * 3


def test_a_queue_that_does_not_work_leaves_all_to_another(url: str) -> None:
    done = threading.Event()
    with working(url, lambda _: pytest.fail("it was not started"), started=False) as idle:
        put(url, idle, "1")
        with working(url, lambda _: done.set()):
            assert done.wait(TIMEOUT)


def until_empty(url: str) -> None:
    """Waits until no job is left."""
    deadline = time.monotonic() + TIMEOUT
    with psycopg.connect(**postgres_address(url), autocommit=True) as asking:
        while asking.execute("SELECT count(*) FROM procrastinate_jobs").fetchone() != (0,):
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.mark.slow
def test_work_that_ends_during_an_outage_is_recorded_later_and_not_repeated() -> None:
    programs = servers.find_programs()
    if programs is None:
        pytest.skip(servers.MISSING)
    begun, ending, worked = threading.Event(), threading.Event(), list[str]()

    def work(known: str) -> None:
        worked.append(known)
        begun.set()
        assert ending.wait(TIMEOUT)

    with PostgresServer(programs) as server, server.database() as url:
        upgrade(url)
        with working(url, work) as queue:
            put(url, queue, "1")
            assert begun.wait(TIMEOUT)
            with server.stopped():
                ending.set()
                time.sleep(1)  # its end can't be told to anyone meanwhile
            put(url, queue, "2")
            until_empty(url)
            for _ in range(2):
                server.disconnect_all()
                put(url, queue, "3")
                until_empty(url)
    assert worked == ["1", "2"] + ["3"] * 2


def test_a_job_that_was_given_out_and_never_arrived_is_given_back(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_LOOK", "_POLL"):
        monkeypatch.setattr(f"torchtriage.queue.postgres_worker.{name}", 0.2)
    worked: list[str] = []
    with working(url, worked.append), psycopg.connect(**postgres_address(url), autocommit=True) as lost:
        lose = (
            "INSERT INTO procrastinate_jobs (queue_name, task_name, queueing_lock, args, status, worker_id) "
            """SELECT 'small', 'triage', '7', '{"incident": "7"}', 'doing', max(id) FROM procrastinate_workers """
            "HAVING max(id) IS NOT NULL RETURNING id"
        )
        deadline = time.monotonic() + TIMEOUT
        while not lost.execute(lose).fetchall():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        until_empty(url)
    assert worked == ["7"]
