"""What a service must survive: its Postgres stopped and started under load, a full disk, a clock that goes back."""

from __future__ import annotations

import http.client
import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import postgres as servers
from tests.services.logs import OUT_OF_MEMORY, upload
from tests.storage import values
from torchtriage.domain.incident import IncidentFilter, Job, State
from torchtriage.services.accept import accept
from torchtriage.services.incidents import read_incident
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.services.triage_incident import triage_incident
from torchtriage.settings import Settings
from torchtriage.storage import incidents
from torchtriage.storage.database import Database, StorageUnavailable

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 300  # seconds, for a busy machine


@pytest.mark.slow
@pytest.mark.postgres
def test_postgres_stopped_and_started_under_load_loses_nothing(tmp_path: Path) -> None:
    programs = servers.find_programs()
    if programs is None:
        pytest.skip(servers.MISSING)
    with servers.PostgresServer(programs) as server, server.database() as url:
        service = open_service(Settings(data_dir=tmp_path, database_url=url, workers=0), triage_incident)
        refused = threading.Event()
        stopping = threading.Event()
        accepted: dict[str, bytes] = {}

        def send() -> None:
            for number in range(1_000_000):
                if stopping.is_set():
                    return
                log = b"run %d\n%b" % (number, OUT_OF_MEMORY)
                try:
                    accepted[accept(service, Job(), [upload(log)]).incident_id] = log
                except StorageUnavailable:
                    refused.set()
                    time.sleep(0.05)

        sender = threading.Thread(target=send)
        sender.start()
        for _ in range(2):
            more_than(accepted, len(accepted) + 3)
            with server.stopped():
                assert refused.wait(TIMEOUT)
            refused.clear()
        more_than(accepted, len(accepted) + 3)
        stopping.set()
        sender.join()
        for incident_id, log in accepted.items():
            triaged(service, incident_id)
            assert b"".join(service.blobs.chunks(read_incident(service, incident_id).log.sha256)) == log
        close_service(service)


def more_than(accepted: dict[str, bytes], count: int) -> None:
    deadline = time.monotonic() + TIMEOUT
    while len(accepted) <= count:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def triaged(service: Service, incident_id: str) -> None:
    deadline = time.monotonic() + TIMEOUT
    while read_incident(service, incident_id).state is not State.TRIAGED:
        assert time.monotonic() < deadline, read_incident(service, incident_id)
        time.sleep(0.05)


@contextmanager
def serving(folder: Path) -> Iterator[tuple[int, int]]:
    """Returns process id and port of a server of its own."""
    environment = os.environ | {"TRIAGE_DATA_DIR": str(folder), "TRIAGE_WORKERS": "0", "TRIAGE_LOG_LEVEL": "error"}
    command = [sys.executable, "-m", "torchtriage.cli.main", "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        address = running.stdout.readline().split()[3].rstrip(",")
        yield running.pid, int(address.rpartition(":")[2])
        running.terminate()
        assert running.wait(timeout=TIMEOUT) in (0, -signal.SIGTERM)


def ask(port: int, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    connection.request(method, path, body)
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


@pytest.mark.slow
def test_a_full_disk_refuses_logs_keeps_the_others_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    dice = random.Random(1)
    large = "".join(f"{dice.random()}\n" for _ in range(20_000)).encode()
    with serving(tmp_path) as (process, port):
        status, answer = ask(port, "POST", "/api/v1/incidents", OUT_OF_MEMORY)
        assert status == 201
        before = json.loads(answer)
        # No file may grow beyond 4 KB any more; what the kernel then says is an OSError like ENOSPC.
        _, hard = resource.prlimit(process, resource.RLIMIT_FSIZE)
        resource.prlimit(process, resource.RLIMIT_FSIZE, (4096, hard))
        for log in (large, b"another\n" + OUT_OF_MEMORY):  # the first finds the log store full, the other the database
            status, answer = ask(port, "POST", "/api/v1/incidents", log)
            assert (status, json.loads(answer)["error"]["code"]) == (503, "storage_unavailable")
        assert [path.name for path in (tmp_path / "logs" / "incoming").rglob("*") if path.is_file()] == ["lock"]
        assert json.loads(ask(port, "GET", f"/api/v1/incidents/{before['id']}")[1])["verdict"] == before["verdict"]
        resource.prlimit(process, resource.RLIMIT_FSIZE, (hard, hard))
        status, answer = ask(port, "POST", "/api/v1/incidents", large)
        assert status == 201, answer
        assert [item["id"] for item in json.loads(ask(port, "GET", "/api/v1/incidents")[1])["items"]] == [
            json.loads(answer)["id"],
            before["id"],
        ]


def test_a_clock_that_was_set_back_loses_nothing_from_lists_and_groups(database_url: str) -> None:
    database = Database(database_url)
    with database.transaction() as session:
        first, second = values.triaged(session, "a"), values.triaged(session, "b", at=-3600)
    with database.reading() as session:
        page = incidents.listed(session, IncidentFilter(), 1, None)
        rest = incidents.listed(session, IncidentFilter(), 1, page.next)
        (group,) = {incident.group for incident in (*page.items, *rest.items) if incident.group}
        # Lists go by the time that each was received at, as the clock told it.
        assert [page.items[0].id, rest.items[0].id] == [first, second]
        assert (group.count, incidents.queued(session)) == (2, (0, None))
        seen = session.connection().exec_driver_sql("SELECT count(*) FROM groups WHERE first_seen < last_seen").scalar()
    database.close()
    assert seen == 1
