"""A whole service whose database refuses to work for a while, or for good: senders are told, nothing is lost."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests import http_server
from tests import postgres as servers
from tests.command_process import ROOT, TIMEOUT, Sender, command, states, until
from tests.http_server import Asked, Told
from tests.postgres import PostgresServer
from tests.services.logs import OUT_OF_MEMORY, upload
from torchtriage.domain.incident import Job
from torchtriage.errors import StorageUnavailable
from torchtriage.services.accept import accept
from torchtriage.services.outbox_worker import OutboxWorker
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.services.triage_incident import triage_incident
from torchtriage.settings import Settings

INCIDENTS = "/api/v1/incidents"
OTHER = b"RuntimeError: DataLoader worker (pid 1) is killed by signal: Killed.\n"
# Runs a worker and ends the thread of its queue from within, by what nothing catches.
_DYING = """
import ctypes, sys, threading, time
from torchtriage.cli.main import main

def kill():
    running = {}
    while "upkeep" not in running:  # which is begun last
        time.sleep(0.1)
        running = {thread.name: thread for thread in threading.enumerate()}
    queue = running["queue"]
    while queue.is_alive():
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(queue.ident), ctypes.py_object(SystemExit))
        time.sleep(0.5)

threading.Thread(target=kill, daemon=True).start()
sys.exit(main(["worker"]))
"""


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A server that no other test sees, as it will not be well."""
    programs = servers.find_programs()
    if programs is None:
        pytest.skip(servers.MISSING)
    with PostgresServer(programs) as server:
        yield server


@pytest.mark.slow
@pytest.mark.postgres
def test_a_database_that_takes_no_writes_for_a_while_loses_neither_logs_nor_alerts(
    own_postgres: PostgresServer, tmp_path: Path
) -> None:
    alerts: list[Asked] = []

    def take(asked: Asked) -> Told:
        alerts.append(asked)
        return Told()

    with http_server.serving(take) as url, own_postgres.database() as database:
        options = {"TRIAGE_WEBHOOK_URL": f"{url}/hook", "TRIAGE_ALLOW_PRIVATE_CALLS": "yes"}
        with (
            command("serve", tmp_path / "data", database, **options) as server,
            command("worker", tmp_path / "data", database, **options) as worker,
        ):
            with Sender(server) as sender:
                sender.more(5)
                until(lambda: alerts)
                with own_postgres.read_only():
                    until(lambda: sender.refused)
                    told = set(sender.refused)
                    assert server.ask("GET", "/readyz")[0] == 503
                    assert server.ask("GET", INCIDENTS)[0] == 200
                    time.sleep(6)  # all loops come round at least once
                sender.more(5)
            assert told == {503}
            until(lambda: set(states(database).values()) == {"triaged"}, 90)
            until(lambda: server.ask("GET", "/readyz")[0] == 200)
            server.ask("POST", INCIDENTS, OTHER)
            until(lambda: any(b"dataloader" in alert.body for alert in alerts))
            assert worker.process.poll() is None
        assert "Traceback" not in server.messages.read_text() + worker.messages.read_text()


@pytest.mark.slow
@pytest.mark.postgres
def test_an_alert_whose_result_is_not_stored_is_sent_once_and_blocks_no_other(
    own_postgres: PostgresServer, tmp_path: Path
) -> None:
    alerts: list[Asked] = []
    with ExitStack() as refusing, own_postgres.database() as database:

        def take(asked: Asked) -> Told:
            if not alerts:
                refusing.enter_context(own_postgres.read_only())
            alerts.append(asked)
            return Told()

        with http_server.serving(take) as url:
            settings = Settings(
                data_dir=tmp_path, database_url=database, workers=0, webhook_url=f"{url}/hook", allow_private_calls=True
            )
            service = open_service(settings, triage_incident)
            outbox_worker = OutboxWorker(service)
            outbox_worker.start()
            accept(service, Job(), [upload(OUT_OF_MEMORY)])
            until(lambda: alerts)
            time.sleep(1)
            refusing.close()
            until(partial(writable, service))
            accept(service, Job(), [upload(OTHER)])
            until(lambda: len(alerts) > 1)
            outbox_worker.stop()
            close_service(service)
    assert [b"dataloader" in alert.body for alert in alerts] == [False, True]


def writable(service: Service) -> bool:
    try:
        service.database.check()
    except StorageUnavailable:
        return False
    return True


@pytest.mark.slow
@pytest.mark.postgres
def test_the_service_follows_the_database_to_the_server_that_was_promoted(
    own_postgres: PostgresServer, tmp_path: Path
) -> None:
    programs = servers.find_programs()
    assert programs is not None
    if not (programs / "pg_basebackup").exists():
        pytest.skip("this Postgres has no pg_basebackup")
    with own_postgres.database() as alone, PostgresServer(programs, primary=own_postgres) as standby:
        url = own_postgres.shared_with(standby, alone)
        with (
            command("serve", tmp_path / "data", url) as server,
            command("worker", tmp_path / "data", url) as worker,
        ):
            with Sender(server) as sender:
                sender.more(10)
                with own_postgres.read_only():  # it goes on to be reached and read, and its connections stay
                    until(lambda: sender.refused)
                    standby.promote()
                    sender.more(10)
                    sender.stop()
                    writable = f"{url}&target_session_attrs=read-write"
                    until(lambda: set(states(writable).values()) == {"triaged"}, 90)
                    assert set(states(writable)) >= set(sender.accepted)
                    until(lambda: server.ask("GET", "/readyz")[0] == 200, 90)  # its loops come back one by one
            assert sender.refused == {503}
            assert worker.process.poll() is None


@pytest.mark.slow
@pytest.mark.postgres
def test_a_worker_stops_soon_while_its_database_is_unavailable(own_postgres: PostgresServer, tmp_path: Path) -> None:
    with own_postgres.database() as url, command("worker", tmp_path / "data", url) as worker:
        with own_postgres.stopped():
            until(lambda: "the queue is unavailable" in worker.messages.read_text())
            worker.process.terminate()
            assert worker.process.wait(timeout=TIMEOUT) == 0  # by itself: who is ended after 28 seconds ends with 1
        assert "Traceback" not in worker.messages.read_text()


@pytest.mark.slow
@pytest.mark.postgres
def test_a_worker_whose_queue_has_died_says_so_and_ends(postgres: PostgresServer, tmp_path: Path) -> None:
    with postgres.database() as url:
        environment = os.environ | {
            "TRIAGE_DATA_DIR": str(tmp_path), "TRIAGE_DATABASE_URL": url, "TRIAGE_WORKERS": "0", "TRIAGE_LOG_LEVEL": "error",
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", _DYING], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT
        )
    assert done.returncode == 1
    # Not the last line in every run: what is shot down late in a destructor is reported after it.
    assert "torchtriage: the queue thread died; other processes take over its jobs" in done.stderr.splitlines()


@pytest.mark.slow
def test_a_database_that_is_taken_away_stops_the_service_in_one_line(tmp_path: Path) -> None:
    folder, taken = tmp_path / "data", "torchtriage.db"
    with command("serve", folder) as server:
        assert server.ask("POST", INCIDENTS, OUT_OF_MEMORY)[0] == 201
        shutil.copy(folder / taken, folder / "copy")
        (folder / "copy").replace(folder / taken)
        assert server.ask("POST", INCIDENTS, b"another\n" + OUT_OF_MEMORY)[0] in (0, 503)
        assert server.process.wait(timeout=TIMEOUT) == 1
    said = server.messages.read_text().splitlines()
    assert said[-1].startswith(f"torchtriage: {folder / taken} was moved or replaced while it was open")
    assert len(said) <= 3, said


@pytest.mark.slow
def test_not_ready_while_another_process_holds_the_database(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with command("serve", folder) as server:
        assert server.ask("GET", "/readyz")[0] == 200
        other = sqlite3.connect(folder / "torchtriage.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        answers: list[tuple[int, Any]] = []

        def answered() -> bool:
            answers.append(server.ask("GET", "/readyz", timeout=3))  # as long as Kubernetes waits
            return answers[-1][0] != 0  # a busy machine may be late; who waits for the database is each time

        until(answered)
        other.execute("ROLLBACK")
        other.close()
        assert [answer["error"]["code"] for status, answer in answers if status] == ["storage_unavailable"]
        until(lambda: server.ask("GET", "/readyz")[0] == 200)
    said = [line for line in server.messages.read_text().splitlines() if "maintenance postponed" not in line]
    assert len(said) == len(answers)  # a line each, no traceback
    assert all("GET /readyz: the database" in line for line in said)
