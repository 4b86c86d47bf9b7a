from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from app.domain.incident import IncidentFilter
from app.storage import incidents
from app.storage.database import Database, StorageUnavailable
from app.storage.upgrade import upgrade
from tests.storage import values


def test_an_error_takes_everything_back(database: Database) -> None:
    def fail() -> None:
        with database.transaction() as session:
            values.triaged(session)
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        fail()
    with database.reading() as session:
        assert incidents.listed(session, IncidentFilter(), 9, None).items == ()


def test_processes_write_beside_one_another_and_lose_nothing(database_url: str) -> None:
    upgrade(database_url)
    program = (
        "import sys; from app.storage.database import Database; from tests.storage import values\n"
        "database = Database(sys.argv[1])\n"
        "for i in range(15):\n"
        "    with database.transaction() as session: values.triaged(session, sys.argv[2] + str(i))\n"
    )
    command = [sys.executable, "-c", program, database_url]
    running = [subprocess.Popen([*command, name], stderr=subprocess.PIPE, text=True) for name in "abcd"]
    assert [process.communicate()[1] for process in running] == [""] * 4
    database = Database(database_url)
    with database.reading() as session:
        assert session.execute(text("SELECT count FROM groups")).scalars().all() == [60]
    database.close()


def test_sqlite_is_set_up_to_survive_a_power_loss(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'a.db'}")
    names = ("journal_mode", "synchronous", "foreign_keys")
    for durable, synchronous in ((True, 2), (False, 1), (True, 2)):
        with database.transaction(durable) as session:
            assert [session.execute(text(f"PRAGMA {name}")).scalar_one() for name in names] == ["wal", synchronous, 1]
    database.close()


def test_a_database_that_is_none_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.db").mkdir()
    database = Database(f"sqlite:///{tmp_path / 'a.db'}")
    with pytest.raises(StorageUnavailable):
        database.check()
    database.close()


def test_a_reader_is_not_held_up_by_a_writer(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    upgrade(url)
    database = Database(url)
    writer = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    with database.reading() as session:
        assert incidents.listed(session, IncidentFilter(), 9, None).items == ()
    writer.close()
    database.close()
