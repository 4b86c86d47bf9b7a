from __future__ import annotations

import errno
import fcntl
import logging
from pathlib import Path

import pytest

from torchtriage.errors import TriageError
from torchtriage.storage.sqlite_lock import DatabaseInUse, alone


def test_one_at_a_time_for_a_sqlite_database_and_any_number_on_postgres(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'deep' / 'triage.db'}"
    with alone(url):
        with (
            pytest.raises(DatabaseInUse, match=r"triage\.db is in use by another server \(process \d+ on "),
            alone(url),
        ):
            pass
        with alone(f"sqlite:///{tmp_path / 'other.db'}"):
            pass
    with alone(url):
        pass
    with alone("postgresql://h/d"), alone("postgresql://h/d"):
        pass


def test_a_folder_that_can_not_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(TriageError, match=r"triage\.db\.lock can't be written: Not a directory"),
        alone(f"sqlite:///{tmp_path / 'file' / 'deep' / 'triage.db'}"),
    ):
        pass


def test_a_file_system_without_locks_is_said_and_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with caplog.at_level(logging.WARNING), alone(f"sqlite:///{tmp_path / 'triage.db'}"):
        assert "can't be locked (No locks available)" in caplog.text
