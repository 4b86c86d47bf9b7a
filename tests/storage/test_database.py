from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import text

from tests.postgres import PostgresServer
from tests.storage import values
from torchtriage.domain.incident import IncidentFilter
from torchtriage.storage import incidents
from torchtriage.storage.database import Database, DatabaseMoved, StorageUnavailable, postgres_address
from torchtriage.storage.schema_upgrade import upgrade


def test_an_error_rolls_everything_back(database: Database) -> None:
    def fail() -> None:
        with database.transaction() as session:
            values.triaged(session)
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        fail()
    with database.reading() as session:
        assert incidents.listed(session, IncidentFilter(), 9, None).items == ()


@pytest.mark.slow
def test_processes_that_write_at_the_same_time_lose_nothing(database_url: str) -> None:
    program = (
        "import sys; from torchtriage.storage.database import Database; from tests.storage import values\n"
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


def test_a_file_that_is_no_database_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.db").mkdir()
    database = Database(f"sqlite:///{tmp_path / 'a.db'}")
    with pytest.raises(StorageUnavailable):
        database.check()
    database.close()


def test_a_reader_does_not_wait_for_a_writer(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    upgrade(url)
    database = Database(url)
    writer = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    with database.reading() as session:
        assert incidents.listed(session, IncidentFilter(), 9, None).items == ()
    writer.close()
    database.close()


def replaced(file: Path) -> None:
    shutil.copy(file, file.with_suffix(".copy"))
    file.with_suffix(".copy").replace(file)


def moved(file: Path) -> None:
    file.rename(file.with_suffix(".old"))


def without_its_log(file: Path) -> None:
    wal = file.with_name(f"{file.name}-wal")
    wal.rename(wal.with_suffix(".old"))


def with_its_folder(file: Path) -> None:
    file.parent.rename(file.parent.with_name("elsewhere"))


@pytest.mark.parametrize("remove_group", [replaced, moved, without_its_log, with_its_folder])
def test_a_file_that_was_moved_is_not_written_any_more(tmp_path: Path, remove_group: Callable[[Path], None]) -> None:
    file = tmp_path / "data" / "a.db"
    upgrade(f"sqlite:///{file}")
    database = Database(f"sqlite:///{file}")
    told: list[bool] = []
    database.on_moved = lambda: told.append(True)
    with database.transaction() as session:
        values.triaged(session)

    def write(first: Callable[[], None]) -> None:
        with database.transaction() as session:
            values.added(session, "another log")
            first()

    with pytest.raises(DatabaseMoved, match="moved or replaced"):  # at the latest when it is committed
        write(lambda: remove_group(file))
    with pytest.raises(DatabaseMoved):
        write(lambda: None)
    with pytest.raises(DatabaseMoved), database.reading() as session:
        incidents.queued(session)
    assert (database.moved is not None, told) == (True, [True])
    database.close()


@pytest.mark.slow
def test_waiting_threads_wait_no_longer_than_the_first(tmp_path: Path) -> None:
    upgrade(f"sqlite:///{tmp_path / 'a.db'}")
    database = Database(f"sqlite:///{tmp_path / 'a.db'}")
    other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    def write() -> None:
        with database.transaction(patience=1):
            pytest.fail("there is another writer")

    began = time.monotonic()
    with ThreadPoolExecutor(20) as pool:
        for one in [pool.submit(write) for _ in range(20)]:
            with pytest.raises(StorageUnavailable):
                one.result()
    assert time.monotonic() - began < 15  # and not twenty times as long as each may
    with pytest.raises(StorageUnavailable):
        database.check()
    other.execute("ROLLBACK")
    database.check()
    other.close()
    database.close()


@pytest.mark.postgres
def test_a_read_only_server_is_reported_and_can_be_read(postgres: PostgresServer) -> None:
    with postgres.database() as url:
        upgrade(url)
        database = Database(url)
        with database.transaction() as session:
            values.triaged(session)
        with database.engine.begin() as connection:
            connection.exec_driver_sql(
                f"ALTER DATABASE {database.engine.url.database} SET default_transaction_read_only = on"
            )
        database.engine.dispose()
        with pytest.raises(StorageUnavailable), database.transaction() as session:
            values.triaged(session)
        with pytest.raises(StorageUnavailable):
            database.check()
        with database.reading() as session:
            assert len(incidents.listed(session, IncidentFilter(), 9, None).items) == 1
        database.close()


def test_of_several_servers_the_one_that_can_be_written_is_asked() -> None:
    several = postgres_address("postgresql+psycopg://me:a%40b@/db?host=one:5432&host=two:5433")
    assert (several["host"], several["port"], several["password"]) == ("one,two", "5432,5433", "a@b")
    assert several["target_session_attrs"] == "read-write"
    chosen = postgres_address("postgresql://me@/db?host=one:5432&host=two:5433&target_session_attrs=any")
    assert chosen["target_session_attrs"] == "any"
    assert "target_session_attrs" not in postgres_address("postgresql://me@one:5432/db")
