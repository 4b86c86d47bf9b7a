"""The database: opens transactions. What SQLite and Postgres do differently is handled here."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Engine, ExceptionContext, make_url
from sqlalchemy.exc import DatabaseError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session
from sqlalchemy.pool import QueuePool

from torchtriage.errors import StorageUnavailable as StorageUnavailable
from torchtriage.extras import require

# Limits for an unreachable server, without which the system waits for hours. In seconds; the last one in milliseconds.
_TIMEOUT = {"connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3,
             "tcp_user_timeout": 30_000}  # fmt: skip
_BUSY = 30  # seconds to wait for another writer, in this process or another
_SHORT = 2  # seconds that a check for writing may wait for others
# SQLSTATE classes that mean "not now" and are not all psycopg OperationalErrors: the database is read-only (25), out of
# space (53), shutting down or starting (57P), or has a system error (58).
_NOT_NOW = ("25", "53", "57P", "58")
_READ_ONLY = "25006"
# Every database of this program has exactly this row.
_TRIED = text("UPDATE alembic_version SET version_num = version_num")
_LOCK, _LOCK_SHARED = (
    text(f"SELECT pg_advisory_xact_lock{kind}(key) FROM unnest(CAST(:keys AS bigint[])) AS key")
    for kind in ("", "_shared")
)


class DatabaseMoved(StorageUnavailable):
    """The open file is no longer the one at the database's path. What is written to it would be lost."""


class Database:
    """A pool of connections. The first transaction opens the first connection."""

    def __init__(self, url: str) -> None:
        self.engine = connect(url)
        # Its commits are not synced and its connections not tested before use, because its work can be repeated.
        self._not_durable = self.engine if self.is_sqlite else connect(url, durable=False)
        # SQLite has one writer. Threads of this process queue here in order, instead of in SQLite's busy loop.
        self._turn = threading.Lock() if self.is_sqlite else None
        self.moved: DatabaseMoved | None = None  # permanent: only a restart opens the new file
        self.on_moved: Callable[[], None] = lambda: None

    @property
    def is_sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def transaction(self, durable: bool = True, patience: float = _BUSY) -> Iterator[Session]:
        """A transaction that can write. It commits at the end, and rolls back on an error.

        Without `durable`, a power loss can undo it as a whole; use that for what can be computed again. `patience` is
        the maximum number of seconds to wait for other writers of SQLite. Raises StorageUnavailable if the database
        cannot be reached or written.
        """
        engine = self.engine if durable else self._not_durable
        with self._write_lock(patience) as wait, self._storage_errors(), Session(engine) as session, session.begin():
            session.connection(execution_options={"writing": True, "durable": durable, "wait": wait})
            yield session

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A transaction that only reads. Raises StorageUnavailable if the database cannot be reached."""
        with self._storage_errors(), Session(self.engine) as session:
            yield session

    def check(self) -> None:
        """Tries a write and rolls it back. Raises StorageUnavailable if the database cannot be written soon."""
        with self.transaction(durable=False, patience=_SHORT) as session:
            if not self.is_sqlite:
                session.execute(text(f"SET LOCAL statement_timeout = '{_SHORT}s'"))
            session.execute(_TRIED)
            session.rollback()

    def close(self) -> None:
        self.engine.dispose()
        self._not_durable.dispose()

    @contextmanager
    def _write_lock(self, patience: float) -> Iterator[float]:
        """Waits until no other thread of this process writes. Yields the seconds left of `patience`."""
        if self._turn is None:
            yield patience
            return
        deadline = time.monotonic() + patience
        if not self._turn.acquire(timeout=patience):
            raise StorageUnavailable("the database is busy; try again later")
        try:
            yield max(0.0, deadline - time.monotonic())
        finally:
            self._turn.release()

    @contextmanager
    def _storage_errors(self) -> Iterator[None]:
        try:
            yield
        except DatabaseMoved as error:
            if self.moved is None:
                self.moved = error
                self.on_moved()
            raise
        except PoolTimeout as error:
            raise StorageUnavailable("the database is unavailable; try again later") from error
        except DBAPIError as error:
            if broken(error):
                raise StorageUnavailable("the database is unavailable; try again later") from error
            if not error.connection_invalidated:
                raise
            raise StorageUnavailable("the connection to the database was lost; try again later") from error


def connect(url: str, foreign_keys: bool = True, durable: bool = True) -> Engine:
    """Returns an engine for `url`. On SQLite, a transaction with the option `writing` takes the write lock at its
    start.

    Without `durable`, commits on Postgres do not wait for the disk, and connections are not tested before use.
    """
    if make_url(url).get_backend_name() != "sqlite":
        require("postgres", "a TRIAGE_DATABASE_URL of Postgres")
        address = postgres_address(url)
        engine = create_engine(
            url,
            pool_pre_ping=durable,
            pool_size=10,
            max_overflow=30,
            connect_args=address,
            json_deserializer=_json,
        )
        event.listen(engine, "connect", partial(_prepare_postgres, durable))
        event.listen(engine, "handle_error", _leave_read_only)
        return engine
    several = {"timeout": _BUSY, "check_same_thread": False}
    # Last in, first out: the connection used last has the warmest cache.
    engine = create_engine(
        url,
        poolclass=QueuePool,
        pool_size=10,
        max_overflow=40,
        pool_use_lifo=True,
        connect_args=several,
        json_deserializer=_json,
    )
    event.listen(engine, "connect", partial(_prepare_sqlite, foreign_keys, make_url(url).database))
    event.listen(engine, "begin", _begin_sqlite)
    event.listen(engine, "commit", _refuse_moved)
    return engine


def _json(text: str) -> Any:
    """Parses JSON. Returns invalid JSON as text, so that one damaged row does not hide the others."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def postgres_address(url: str) -> dict[str, Any]:
    """Returns psycopg's connection parameters. If the URL has several hosts, psycopg connects to the one that accepts
    writes."""
    parsed = make_url(url)
    _, given = parsed.get_dialect()().create_connect_args(parsed)
    several = {"target_session_attrs": "read-write"} if "," in str(given.get("host", "")) else {}
    return {**_TIMEOUT, **several, **given}


def lock(session: Session, *names: str, shared: bool = False) -> None:
    """Locks `names` in this order until the transaction ends. Another transaction that asks for one of them waits,
    unless both share it."""
    if session.get_bind().dialect.name == "postgresql":
        keys = [int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True) for name in names]
        session.connection().execute(_LOCK_SHARED if shared else _LOCK, {"keys": keys})
    # On SQLite, only one transaction writes at a time.


def insert(session: Session, table: Any) -> sqlite.Insert | postgresql.Insert:
    """Returns an INSERT of the session's database, which supports ON CONFLICT."""
    return sqlite.insert(table) if session.get_bind().dialect.name == "sqlite" else postgresql.insert(table)


def _prepare_postgres(durable: bool, connection: Any, _record: Any) -> None:
    connection.execute("SET jit = off")  # compiling our queries takes far longer than running them
    if not durable:
        connection.execute("SET synchronous_commit = off")
    connection.commit()


def _leave_read_only(context: ExceptionContext) -> None:
    """Reconnects everything after a read-only error, because the server may have been demoted."""
    if _sqlstate(context.original_exception) == _READ_ONLY:
        context.is_disconnect = True


def _prepare_sqlite(foreign_keys: bool, path: str | None, connection: Any, record: Any) -> None:
    connection.isolation_level = None  # this module sends BEGIN itself, see _begin_sqlite
    keys = f"foreign_keys={'ON' if foreign_keys else 'OFF'}"
    # The rollback data of a statement is useless after a crash, so it can be in memory.
    for pragma in ("journal_mode=WAL", "temp_store=MEMORY", keys):
        connection.execute(f"PRAGMA {pragma}")
    # Creates the -wal file, which stays until the last connection closes.
    connection.execute("SELECT 1 FROM sqlite_master").close()
    if path and os.path.exists(path):  # and the database is not in memory
        files = (path, f"{path}-wal")
        record.info["files"] = {file: _identity(file) for file in files}


def _begin_sqlite(connection: Connection) -> None:
    """A writer takes its lock at the start. If it did so later, it would fail when another process wrote meanwhile."""
    _refuse_moved(connection)
    options = connection.get_execution_options()
    writing = options.get("writing")
    if writing:
        # FULL syncs at the commit; NORMAL leaves that to the next commit that syncs.
        wanted = {
            "synchronous": "FULL" if options.get("durable", True) else "NORMAL",
            "busy_timeout": int(options.get("wait", _BUSY) * 10) * 100,
        }
        for name, value in wanted.items():
            if connection.info.get(name) != value:  # a connection keeps its settings
                connection.exec_driver_sql(f"PRAGMA {name}={value}")
                connection.info[name] = value
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _refuse_moved(connection: Connection) -> None:
    for file, known in connection.info.get("files", {}).items():
        if _identity(file) != known:
            raise DatabaseMoved(f"{file} was moved or replaced while it was open; restart the service")


def _identity(file: str) -> tuple[int, int] | None:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def broken(error: DBAPIError) -> bool:
    """Returns whether the database cannot be used, as opposed to an error in the statement."""
    # SQLite has no error class of its own for a damaged file or a file that is not a database.
    known = isinstance(error, (OperationalError, InterfaceError)) or type(error) is DatabaseError
    return known or (_sqlstate(error.orig) or "").startswith(_NOT_NOW)


def _sqlstate(error: BaseException | None) -> str | None:
    return getattr(error, "sqlstate", None)
