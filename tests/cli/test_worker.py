"""`torchtriage worker` as people start it, beside a server that leaves the triage to it."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ports import kept_port
from tests.postgres import PostgresServer
from tests.services.logs import OUT_OF_MEMORY, upload
from torchtriage.cli.main import main
from torchtriage.domain.incident import Job, State
from torchtriage.services.accept import accept
from torchtriage.services.incidents import read_incident
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.services.triage_incident import triage_incident
from torchtriage.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 300  # seconds, for a busy machine


@pytest.fixture
def accepting(postgres: PostgresServer, tmp_path: Path) -> Iterator[Service]:
    """A service that leaves all triage to others."""
    with postgres.database() as url:
        settings = Settings(data_dir=tmp_path, database_url=url, workers=0, serve_triages=False)
        service = open_service(settings, triage_incident, working=False)
        yield service
        close_service(service)


@contextmanager
def worker(settings: Settings, **more: str) -> Iterator[subprocess.Popen[str]]:
    """One that works the queue; it must end well, or by a kill, inside."""
    environment = os.environ | {
        "TRIAGE_DATA_DIR": str(settings.data_dir),
        "TRIAGE_DATABASE_URL": settings.database,
        "TRIAGE_WORKERS": "1",
        **more,
    }
    command = [sys.executable, "-m", "torchtriage.cli.main", "worker"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert "works the queue" in running.stdout.readline()
        yield running
        running.terminate()
        assert running.wait(timeout=TIMEOUT) in (0, -signal.SIGKILL)


def until(service: Service, incident_id: str, *states: State) -> None:
    deadline = time.monotonic() + TIMEOUT
    while read_incident(service, incident_id).state not in states:
        assert time.monotonic() < deadline, read_incident(service, incident_id)
        time.sleep(0.05)


def sent(service: Service, content: bytes = OUT_OF_MEMORY) -> str:
    return accept(service, Job(), [upload(content)]).incident_id


@pytest.mark.slow
@pytest.mark.postgres
def test_a_worker_triages_a_servers_incidents_and_waiting_callers_get_the_verdict(accepting: Service) -> None:
    with kept_port() as port, worker(accepting.settings, TRIAGE_WORKER_METRICS_PORT=str(port)):
        incident_id = sent(accepting)
        future = accepting.queue.find(incident_id)
        assert future is not None
        future.result(timeout=TIMEOUT)
        assert read_incident(accepting, incident_id).state is State.TRIAGED
        counted = 'torchtriage_triaged_total{entry="cuda.oom",outcome="explained"} 1.0'
        deadline = time.monotonic() + TIMEOUT
        while counted not in shown(port):  # it counts after it has kept the verdict
            assert time.monotonic() < deadline, shown(port)
            time.sleep(0.05)


def shown(port: int) -> str:
    """Returns what a worker tells Prometheus."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return text


@pytest.mark.slow
@pytest.mark.postgres
def test_work_of_a_stopped_or_killed_worker_goes_to_another(
    accepting: Service,
) -> None:
    # A worker's first triage takes seconds, as its process is started then.
    hard = b"".join(b"RuntimeError: part %d of %d\n" % (number, number) for number in range(20_000))
    incident_id = sent(accepting, hard)
    with worker(accepting.settings):
        until(accepting, incident_id, State.TRIAGING, State.TRIAGED)
    assert read_incident(accepting, incident_id).state in (State.RECEIVED, State.TRIAGED)
    other_id = sent(accepting, b"another\n" + hard)
    with worker(accepting.settings) as killed:
        until(accepting, other_id, State.TRIAGING, State.TRIAGED)
        killed.kill()
    with worker(accepting.settings):
        for known in (incident_id, other_id):
            until(accepting, known, State.TRIAGED)


def test_on_sqlite_a_worker_says_who_triages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRIAGE_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("TRIAGE_DATABASE_URL", raising=False)
    assert main(["worker"]) == 2
    errors = capsys.readouterr().err
    assert "needs Postgres" in errors
    assert errors.count("\n") == 1
