"""Backup and restore as docs/operating.md describes them, while the service accepts logs."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from tests import postgres as servers
from torchtriage.cli import db
from torchtriage.domain.incident import IncidentFilter, Job
from torchtriage.errors import BadInput
from torchtriage.reading.unpack import Upload
from torchtriage.services.accept import accept
from torchtriage.services.incidents import list_incidents
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.services.triage_incident import triage_incident
from torchtriage.settings import Settings
from torchtriage.storage.backup import backup
from torchtriage.storage.database import StorageUnavailable

FIRST = 20  # incidents before the backup begins
MEANWHILE = 20  # at least this many are accepted during the backup


def log(number: int) -> bytes:
    return b"step %d\n" % number * 2000 + b"RuntimeError: CUDA error: out of memory\n"


@contextmanager
def opened(settings: Settings) -> Iterator[Service]:
    service = open_service(settings, triage_incident)
    try:
        yield service
    finally:
        close_service(service)


def hand_in(service: Service, number: int) -> str:
    return accept(service, Job(job_id=str(number)), [Upload("run.log", iter([log(number)]))]).incident_id


def accepting_while(service: Service, copy: Callable[[], None]) -> dict[str, int]:
    """Runs `copy` while incidents arrive. Returns the incidents acknowledged before it began, with their numbers."""
    acknowledged = {hand_in(service, number): number for number in range(FIRST)}
    stopped, enough = threading.Event(), threading.Event()

    def go_on() -> None:
        number = FIRST
        while not stopped.is_set():
            hand_in(service, number)
            number += 1
            if number >= FIRST + MEANWHILE:
                enough.set()

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        copy()
        assert enough.wait(120)
    finally:
        stopped.set()
        thread.join()
    return acknowledged


def check_restored(settings: Settings, acknowledged: dict[str, int]) -> None:
    """Checks that all incidents acknowledged before the backup exist and all logs are complete."""
    with opened(settings) as service:
        found = list_incidents(service, IncidentFilter(), limit=1000).items
        assert set(acknowledged) <= {incident.id for incident in found}
        for incident in found:
            (file,) = incident.log.files
            assert b"".join(service.blobs.chunks(file.sha256)) == log(int(incident.job.job_id or ""))
            if incident.id in acknowledged:
                assert incident.job.job_id == str(acknowledged[incident.id])
        hand_in(service, 100_000)  # it accepts logs again


def copy_logs(settings: Settings, to: Path) -> None:
    """Copies as `rsync --exclude incoming` does, because running uploads belong to no incident yet."""
    shutil.copytree(settings.blobs, to, ignore=shutil.ignore_patterns("incoming"))


@pytest.mark.slow
def test_sqlite_is_backed_up_while_it_is_written_and_restored(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "old", workers=0)
    restored = Settings(data_dir=tmp_path / "new", workers=0)

    def copy() -> None:
        restored.data_dir.mkdir()
        backup(settings.database, restored.data_dir / "torchtriage.db")
        copy_logs(settings, Path(restored.blobs))

    with opened(settings) as service:
        acknowledged = accepting_while(service, copy)
    assert [path.name for path in restored.data_dir.glob("*.db*")] == ["torchtriage.db"]
    check_restored(restored, acknowledged)


@pytest.mark.slow
@pytest.mark.postgres
def test_postgres_is_backed_up_while_it_is_written_and_restored(
    tmp_path: Path, postgres: servers.PostgresServer
) -> None:
    programs = servers.find_programs()
    assert programs is not None
    if not (programs / "pg_dump").exists() or not (programs / "pg_restore").exists():
        pytest.skip(f"no pg_dump in {programs}")
    with postgres.database() as url, postgres.database() as other:
        settings = Settings(data_dir=tmp_path / "old", database_url=url, workers=0)
        restored = Settings(data_dir=tmp_path / "new", database_url=other, workers=0)
        dump = tmp_path / "dump"

        def copy() -> None:
            run(programs / "pg_dump", url, "--format=custom", f"--file={dump}")
            copy_logs(settings, Path(restored.blobs))

        with opened(settings) as service:
            acknowledged = accepting_while(service, copy)
        run(programs / "pg_restore", other, "--no-owner", "--exit-on-error", str(dump))
        check_restored(restored, acknowledged)


def run(program: Path, url: str, *arguments: str) -> None:
    parsed = make_url(url)
    place = [f"--dbname={parsed.database}", f"--host={parsed.query['host']}", f"--username={parsed.username}"]
    subprocess.run([program, *place, *arguments], check=True, env={**os.environ, "PGPORT": "5432"})


def test_the_command_copies_and_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = argparse.ArgumentParser()
    db.add_parser(parser.add_subparsers())
    monkeypatch.setenv("TRIAGE_DATA_DIR", str(tmp_path))
    options = parser.parse_args(["db", "backup", str(tmp_path / "copy.db")])
    with pytest.raises(StorageUnavailable):
        options.run(options)
    assert not list(tmp_path.iterdir())
    with opened(Settings(data_dir=tmp_path, workers=0)):
        assert options.run(options) == 0
    assert "now copy the logs" in capsys.readouterr().out
    with pytest.raises(BadInput, match="the file exists"):
        options.run(options)
    with pytest.raises(BadInput, match="pg_dump"):
        backup("postgresql://x/y", tmp_path / "other.db")
