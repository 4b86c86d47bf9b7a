"""Puts what a release left behind into a data directory, on a database of either kind."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

from sqlalchemy import MetaData, Table, create_engine, func, select, text
from sqlalchemy.engine import make_url

from torchtriage.storage.schema_upgrade import upgrade

RELEASES = Path(__file__).resolve().parent
_SEARCHED = {"search"}  # filled and asked in the words of one database


def unpack(release: str, folder: Path, database_url: str) -> None:
    """Unpacks the logs into `folder`, and the database, as it was, into the one at `database_url`, which is empty."""
    with tarfile.open(RELEASES / f"{release}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    kept = folder / "torchtriage.db"
    url = make_url(database_url)
    if url.get_backend_name() == "sqlite":
        assert url.database is not None
        shutil.move(kept, url.database)
    else:
        _copy(f"sqlite:///{kept}", database_url)
        kept.unlink()


def _copy(source: str, target: str) -> None:
    """Makes the tables of the release, and copies their rows."""
    engines = create_engine(source), create_engine(target)
    with engines[0].connect() as read, engines[1].connect() as write:
        version = read.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
        upgrade(target, version)
        tables, kept = MetaData(), MetaData()
        tables.reflect(write)
        kept.reflect(read)
        for table in tables.sorted_tables:
            if table.name in kept.tables and table.name not in {"alembic_version", *_SEARCHED}:
                rows = [dict(row) for row in read.execute(select(table)).mappings()]
                if rows:
                    write.execute(table.insert(), rows)
                    _count_on(write, table)
        write.commit()
    for engine in engines:
        engine.dispose()


def _count_on(connection: object, table: Table) -> None:
    """Numbers that the database gives out go on behind those that were copied."""
    column = table.c.get("number")
    if column is None:
        return
    sequence = func.pg_get_serial_sequence(table.name, "number")
    last = select(func.max(column)).scalar_subquery()
    connection.execute(select(func.setval(sequence, last)))  # type: ignore[attr-defined]
