from __future__ import annotations

import errno
import fcntl
import logging
from pathlib import Path

import pytest

from torchtriage.errors import TriageError
from torchtriage.storage.sqlite_lock import DatabaseInUse, exclusive_use


def test_one_at_a_time_for_a_sqlite_database_and_any_number_on_postgres(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'deep' / 'triage.db'}"
    with exclusive_use(url):
        with (
            pytest.raises(DatabaseInUse, match=r"triage\.db is in use by another server \(process \d+ on "),
            exclusive_use(url),
        ):
            pass
        with exclusive_use(f"sqlite:///{tmp_path / 'other.db'}"):
            pass
    with exclusive_use(url):
        pass
    with exclusive_use("postgresql://h/d"), exclusive_use("postgresql://h/d"):
        pass


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(TriageError, match=r"triage\.db\.lock can't be written: Not a directory"),
        exclusive_use(f"sqlite:///{tmp_path / 'file' / 'deep' / 'triage.db'}"),
    ):
        pass


def test_a_file_system_without_locks_is_logged_and_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with caplog.at_level(logging.WARNING), exclusive_use(f"sqlite:///{tmp_path / 'triage.db'}"):
        assert "can't be locked (No locks available)" in caplog.text
