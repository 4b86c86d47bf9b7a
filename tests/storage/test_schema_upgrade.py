from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from procrastinate.schema import SchemaManager
from sqlalchemy import text

from tests.storage import values
from torchtriage.storage import incidents, schema_upgrade
from torchtriage.storage.database import Database, StorageUnavailable, connect


def tables(url: str) -> set[str]:
    engine = connect(url)
    kind = "sqlite" if engine.dialect.name == "sqlite" else "postgres"
    query = {
        "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
        "postgres": "SELECT tablename FROM pg_tables WHERE schemaname = 'public'",
    }
    with engine.connect() as connection:
        found = set(connection.execute(text(query[kind])).scalars())
    engine.dispose()
    return found


def test_data_survives_upgrade_downgrade_and_upgrade(empty_database_url: str) -> None:
    schema_upgrade.upgrade(empty_database_url)
    database = Database(empty_database_url)
    with database.transaction() as session:
        values.triaged(session)
    database.close()
    schema_upgrade.downgrade(empty_database_url, "base")
    assert tables(empty_database_url) == {"alembic_version"}
    schema_upgrade.upgrade(empty_database_url)
    with database.transaction() as session:
        assert incidents.read(session, values.triaged(session)).verdict is not None
    database.close()


def test_counts_equal_the_incidents_after_any_migration_path(empty_database_url: str) -> None:
    schema_upgrade.upgrade(empty_database_url)
    database = Database(empty_database_url)
    with database.transaction() as session:
        for at in range(6):
            found = values.summary(f"v1:{at}", entry="xid.79" if at % 2 else None, gpu_hours=1.25 * at, hardware=at > 3)
            values.triaged(session, str(at), at * 500_000, found, cluster="blue" if at < 4 else None)
        values.triaged(session, "healthy", 9, values.summary(None, outcome="healthy", entry=None))
        values.added(session, "waits")
    kept = [rows(database, "counts"), rows(database, "host_counts")]
    database.close()
    schema_upgrade.downgrade(empty_database_url, "0007")
    daily = rows(database, "daily_counts")
    assert [(row.day, row.cluster, row.outcome, row.entry, row.count, row.gpu_hours) for row in daily][:2] == [
        ("2026-05-01", "", "healthy", "", 1, 0.0),
        ("2026-05-01", "blue", "explained", "", 1, 0.0),
    ]
    assert sum(row.count for row in daily) == 7
    database.close()
    schema_upgrade.upgrade(empty_database_url)
    assert [rows(database, "counts"), rows(database, "host_counts")] == kept
    assert len(kept[0]) > 20
    database.close()


def rows(database: Database, table: str) -> list[Any]:
    with database.reading() as session:
        return sorted(session.execute(text(f"SELECT * FROM {table}")).all())


def test_no_migration_is_missing(empty_database_url: str) -> None:
    schema_upgrade.upgrade(empty_database_url)
    assert schema_upgrade.missing(empty_database_url) is None


def test_a_missing_migration_is_found(empty_database_url: str) -> None:
    schema_upgrade.upgrade(empty_database_url)
    engine = connect(empty_database_url)
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE incidents DROP COLUMN failure"))
    engine.dispose()
    assert "failure" in (schema_upgrade.missing(empty_database_url) or "")


def test_sessions_without_a_known_token_end(empty_database_url: str) -> None:
    schema_upgrade.upgrade(empty_database_url, "0009")
    database = Database(empty_database_url)
    adding = "INSERT INTO tokens (sha256, name, scopes, session, created_at) VALUES (:of, 'ann', 'read', :session, :at)"
    with database.transaction() as session:
        for of, kind in (("a", False), ("b", True)):
            session.execute(text(adding), {"of": of, "session": kind, "at": "2026-05-01 09:00:00"})
    schema_upgrade.upgrade(empty_database_url)
    assert [(row.sha256, row.begun_with) for row in rows(database, "tokens")] == [("a", None)]
    schema_upgrade.downgrade(empty_database_url, "0009")
    assert [row.sha256 for row in rows(database, "tokens")] == ["a"]
    database.close()


def test_a_database_of_a_newer_version_is_refused(empty_database_url: str) -> None:
    schema_upgrade.upgrade(empty_database_url)
    engine = connect(empty_database_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(schema_upgrade.WrongVersion, match="newer"):
        schema_upgrade.upgrade(empty_database_url)
    with pytest.raises(schema_upgrade.WrongVersion, match="9999, newer"):
        schema_upgrade.check(empty_database_url)


def test_check_asks_for_an_upgrade(empty_database_url: str) -> None:
    with pytest.raises(schema_upgrade.WrongVersion, match="nothing"):
        schema_upgrade.check(empty_database_url)
    schema_upgrade.upgrade(empty_database_url)
    schema_upgrade.check(empty_database_url)


def test_a_start_on_a_current_database_compiles_no_migration(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = schema_upgrade.head()
    monkeypatch.setattr(schema_upgrade, "ScriptDirectory", None)
    schema_upgrade.upgrade(database_url)
    schema_upgrade.check(database_url)
    assert schema_upgrade.head() == newest


def test_the_queue_is_of_the_version_that_migrations_make() -> None:
    # A newer procrastinate can need other tables: give its change of them a migration here, then move this line.
    changes = sorted(path.name for path in Path(SchemaManager.get_migrations_path()).glob("*.sql"))
    assert changes[-1] == "03.04.00_50_post_add_retry_failed_job_procedure.sql"


@pytest.mark.slow
def test_four_processes_upgrade_at_once(empty_database_url: str) -> None:
    program = "import sys; from torchtriage.storage.schema_upgrade import upgrade; upgrade(sys.argv[1])"
    command = [sys.executable, "-c", program, empty_database_url]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    ended = [(process.communicate()[1], process.returncode) for process in running]
    assert ended == [("", 0)] * 4
    schema_upgrade.check(empty_database_url)


def test_an_unreachable_address_is_reported_in_one_line() -> None:
    with pytest.raises(StorageUnavailable) as raised:
        schema_upgrade.upgrade("postgresql://nobody@127.0.0.1:1/nothing")
    assert "\n" not in raised.value.message


def test_a_file_that_is_no_database_is_reported_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a database\n" * 99)
    with pytest.raises(StorageUnavailable, match="not a database") as raised:
        schema_upgrade.upgrade(f"sqlite:///{file}")
    assert "\n" not in raised.value.message
    database = Database(f"sqlite:///{file}")
    with pytest.raises(StorageUnavailable):
        database.check()
    database.close()


def test_the_folder_of_the_database_is_made(tmp_path: Path) -> None:
    schema_upgrade.upgrade(f"sqlite:///{tmp_path / 'a' / 'b' / 'triage.db'}")
    assert (tmp_path / "a" / "b" / "triage.db").exists()
