from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.services.logs import kept, upload
from torchtriage.cli import db, serve
from torchtriage.cli.main import main
from torchtriage.domain.incident import Job
from torchtriage.errors import SettingError, TriageError
from torchtriage.services.accept import accept
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.settings import Settings
from torchtriage.storage import incidents
from torchtriage.storage.schema_upgrade import head


def options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers()
    serve.add_parser(subparsers)
    db.add_parser(subparsers)
    return parser.parse_args(arguments)


def test_the_database_is_upgraded_and_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRIAGE_DATA_DIR", str(tmp_path))
    with pytest.raises(TriageError, match="run `torchtriage db upgrade`"):
        db.run(options("db", "check"))
    assert db.run(options("db", "upgrade")) == db.run(options("db", "check")) == 0
    assert "is at version" in capsys.readouterr().out


def test_all_verdicts_are_counted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRIAGE_DATA_DIR", str(tmp_path))
    recount = options("db", "recount")
    with pytest.raises(TriageError, match="run `torchtriage db upgrade`"):
        recount.run(recount)
    db.run(options("db", "upgrade"))
    assert recount.run(recount) == 0
    assert "0 verdicts counted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (["--host", "0.0.0.0"], {}, "TRIAGE_HOST: 0.0.0.0 is not a loopback address"),
        (["--port", "99999"], {}, "TRIAGE_PORT: "),
        ([], {"TRIAGE_RETENTION_DAYS": "x"}, "TRIAGE_RETENTION_DAYS: "),
        ([], {"TRIAGE_BLOB_URL": "ftp://logs"}, "TRIAGE_BLOB_URL: neither a folder nor s3://BUCKET/PREFIX"),
        ([], {"TRIAGE_DATA_DIR": "ftp://logs"}, "TRIAGE_DATA_DIR: a URL, not a folder or file"),
        (["--port", "0"], {"TRIAGE_KNOWLEDGE_DIRS": "/nowhere"}, "TRIAGE_KNOWLEDGE_DIRS: /nowhere is not a folder"),
    ],
)
def test_a_bad_setting_stops_the_start(
    arguments: list[str],
    environment: dict[str, str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in ({"TRIAGE_DATA_DIR": str(tmp_path)} | environment).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingError, match=message) as raised:
        serve.run(options("serve", *arguments))
    assert "\n" not in raised.value.message


def test_a_port_in_use_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIAGE_DATA_DIR", str(tmp_path))
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(TriageError, match=r"can't listen on 127.0.0.1:\d+: Address already in use$"),
    ):
        serve.run(options("serve", "--port", str(taken.getsockname()[1])))


def test_an_unknown_host_name_to_listen_on_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIAGE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TRIAGE_AUTH", "tokens")
    with pytest.raises(TriageError, match=r"can't listen on no.such.invalid:8000: \w") as raised:
        serve.run(options("serve", "--host", "no.such.invalid"))
    assert "Unknown error" not in raised.value.message


@contextmanager
def served(folder: Path, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """`torchtriage serve` on a free port, in a process of its own, which is gone at the end. It has no processes that
    triage, which take seconds to start, where `environment` does not ask for them."""
    program = [sys.executable, "-m", "torchtriage.cli.main", "serve", "--port", "0"]
    known = {"TRIAGE_DATA_DIR": str(folder), "HOME": str(Path.home()), "PYTHONPATH": ":".join(sys.path)}
    known["TRIAGE_WORKERS"] = "0"
    with subprocess.Popen(
        program,
        env=known | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # the tests may run under nohup
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def address_of(running: subprocess.Popen[str]) -> str:
    assert running.stdout is not None
    return running.stdout.readline().split()[3].rstrip(",")


@pytest.mark.parametrize("asked", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)])
def test_it_serves_until_it_is_asked_to_stop(asked: signal.Signals, tmp_path: Path) -> None:
    with served(tmp_path, TRIAGE_WORKERS="1") as running:
        log = b"RuntimeError: CUDA error: out of memory\n"
        with urllib.request.urlopen(f"{address_of(running)}/api/v1/incidents", data=log) as answer:
            assert answer.status in (201, 202)
        running.send_signal(asked)
        _, errors = running.communicate(timeout=60)
    assert "Application shutdown complete" in errors
    assert list((tmp_path / "logs" / "incoming").iterdir()) == []


@pytest.mark.slow
def test_a_second_server_on_one_sqlite_database_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    with served(tmp_path) as first:
        address = address_of(first)
        elsewhere = f"sqlite:///{tmp_path}/../{tmp_path.name}/torchtriage.db"
        with served(tmp_path / "other", TRIAGE_DATABASE_URL=elsewhere) as second:
            _, errors = second.communicate(timeout=60)
        assert second.returncode == 1
        (line,) = errors.splitlines()
        assert f"{tmp_path / 'torchtriage.db'} is in use by another server (process {first.pid} on " in line
        tool = [sys.executable, "-m", "torchtriage.cli.main", "token", "create", "ann", "--scope", "read"]
        subprocess.run(tool, check=True, env={**os.environ, "TRIAGE_DATA_DIR": str(tmp_path)}, capture_output=True)
        with urllib.request.urlopen(f"{address}/readyz") as answer:
            assert answer.status == 200
    # It was killed: the system took the lock away with it.
    with served(tmp_path) as third:
        assert address_of(third)


@pytest.mark.slow
def test_nobody_is_believed_about_who_asks_unless_the_settings_say_so(tmp_path: Path) -> None:
    for trusted, shown in (("", "127.0.0.1"), ("127.0.0.0/8", "203.0.113.7")):
        with served(tmp_path, TRIAGE_TRUSTED_PROXIES=trusted, TRIAGE_LOG_FORMAT="json") as running:
            asked = urllib.request.Request(f"{address_of(running)}/healthz", headers={"X-Forwarded-For": "203.0.113.7"})
            with urllib.request.urlopen(asked) as answer:
                assert answer.status == 200
            running.terminate()
            _, errors = running.communicate(timeout=60)
        (line,) = [json.loads(line) for line in errors.splitlines() if "/healthz" in line]
        assert line["address"] == shown


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A service on the folder that the commands of a test use too, beside it."""
    monkeypatch.setenv("TRIAGE_DATA_DIR", str(tmp_path))
    opened = open_service(Settings(data_dir=tmp_path, workers=0), lambda *_: None, working=False)
    yield opened
    close_service(opened)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    """Returns the exit status of `torchtriage db …`, and the lines that it prints."""
    given = options("db", *arguments)
    status = given.run(given)
    return status, capsys.readouterr().out.splitlines()


def test_stored_logs_are_checked_and_the_bad_ones_named(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = [("1", b"one\n"), ("2", b"two\n"), ("3", b"two\n"), ("4", b"three\n")]
    logs = [accept(service, Job(job_id=job), [upload(log)]).incident.log.sha256 for job, log in jobs]
    assert told(capsys, "check", "--logs")[1][1:] == ["3 stored logs were read, 0 of them are damaged or missing"]
    places = {path.name.removesuffix(".zst"): path for path in kept(service)}
    places[logs[1]].write_bytes(b"")
    places[logs[3]].unlink()
    status, lines = told(capsys, "check", "--logs")
    assert status == 1
    assert sorted(lines[1:-1]) == [
        f"the stored log is damaged: {logs[1]}: the file is empty; of incident 2, 3",
        f"the stored log is missing: {logs[3]}; of incident 4",
    ]
    assert lines[-1] == "3 stored logs were read, 2 of them are damaged or missing"
    assert told(capsys, "check")[0] == 0


def test_a_newer_database_is_reported_in_one_line(
    service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(tmp_path / "torchtriage.db")) as database, database:
        database.execute("UPDATE alembic_version SET version_num = '0999'")
    for command in (["db", "check"], ["db", "upgrade"], ["db", "recount"]):
        assert main(command) == 1
        out, error = capsys.readouterr()
        assert out == ""
        assert (
            error
            == f"torchtriage: the database is at 0999, newer than this torchtriage supports ({head()}): use a newer version\n"
        )


def test_held_back_deletions_can_be_run_by_command(
    service: Service, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(capsys, "forget-old") == (0, ["TRIAGE_RETENTION_DAYS is not set: incidents are kept forever"])
    monkeypatch.setenv("TRIAGE_RETENTION_DAYS", "7")
    for number in range(3):
        at = datetime.now(UTC) - timedelta(days=400 * number)
        accept(service, Job(job_id=str(number)), [upload(b"run %d\n" % number)], at)
    ((status, (line,)),) = [told(capsys, "forget-old")]
    assert (status, line.partition(" before ")[0]) == (0, "2 of 3 incidents were received")
    assert len(kept(service)) == 3
    assert told(capsys, "forget-old", "--yes") == (0, ["2 incidents were deleted"])
    (place,) = kept(service)
    with service.database.transaction() as session:
        incidents.remove(session, incidents.received_before(session, datetime.now(UTC), 1)[0])
    os.utime(place, (0, 0))
    assert told(capsys, "sweep") == (0, ["1 of 1 stored logs belong to no incident of this database"])
    assert kept(service) == [place]
    assert told(capsys, "sweep", "--yes") == (0, ["1 stored logs were removed"])
    assert kept(service) == []
