"""The database: an address in, transactions out. What SQLite and Postgres do differently starts here."""

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

# With a server that is cut off, which the system alone waits for for hours: seconds, and the last one milliseconds.
_PATIENCE = {"connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3,
             "tcp_user_timeout": 30_000}  # fmt: skip
_BUSY = 30  # seconds to wait for another's write, whether it is of this process or of another
_SHORT = 2  # seconds that a look at whether the database can be written may wait for others
# Of Postgres, all errors but psycopg's OperationalErrors that say "not now": it takes no writes (25), has no room (53),
# is going down or coming up (57P), or its system fails it (58).
_NOT_NOW = ("25", "53", "57P", "58")
_READ_ONLY = "25006"
_TRIED = text("UPDATE alembic_version SET version_num = version_num")  # the one row that every database of ours has
_LOCK, _LOCK_SHARED = (
    text(f"SELECT pg_advisory_xact_lock{kind}(key) FROM unnest(CAST(:keys AS bigint[])) AS key")
    for kind in ("", "_shared")
)


class DatabaseMoved(StorageUnavailable):
    """What is open is not what lies at the database's place any more: what is written there, nobody finds again."""


class Database:
    """A pool of connections. Opens nothing until the first transaction."""

    def __init__(self, url: str) -> None:
        self.engine = connect(url)
        # Its connections sync no commit, and are not tried before each use: what they are for is done again anyway.
        self._not_durable = self.engine if self.is_sqlite else connect(url, durable=False)
        # SQLite has one writer; the threads of this process queue here, in turn, and not in its busy loop.
        self._turn = threading.Lock() if self.is_sqlite else None
        self.moved: DatabaseMoved | None = None  # for good: only a new start opens what lies there now
        self.on_moved: Callable[[], None] = lambda: None

    @property
    def is_sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def transaction(self, durable: bool = True, patience: float = _BUSY) -> Iterator[Session]:
        """A transaction that writes; commits at the end, takes everything back on an error.

        One that is not `durable` can be lost, whole, in a power loss: for what can be worked out again. `patience` is
        how many seconds it waits for other writers of SQLite at most, in all.
        Raises StorageUnavailable where the database can't be reached or written.
        """
        engine = self.engine if durable else self._not_durable
        with self._in_turn(patience) as wait, self._told(), Session(engine) as session, session.begin():
            session.connection(execution_options={"writing": True, "durable": durable, "wait": wait})
            yield session

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A transaction that only reads. Raises StorageUnavailable where the database can't be reached."""
        with self._told(), Session(self.engine) as session:
            yield session

    def check(self) -> None:
        """Tries a write, and takes it back. Raises StorageUnavailable where the database can't be written soon."""
        with self.transaction(durable=False, patience=_SHORT) as session:
            if not self.is_sqlite:
                session.execute(text(f"SET LOCAL statement_timeout = '{_SHORT}s'"))
            session.execute(_TRIED)
            session.rollback()

    def close(self) -> None:
        self.engine.dispose()
        self._not_durable.dispose()

    @contextmanager
    def _in_turn(self, patience: float) -> Iterator[float]:
        """-> the seconds of `patience` that are left once no thread of this process writes beside."""
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
    def _told(self) -> Iterator[None]:
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
    """-> an engine for `url`; on SQLite a connection with the option `writing` takes the lock as it begins.

    On Postgres, where it need not be `durable`, a commit waits for no disk and no connection is tried before its use.
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
    # The connection that was used last is taken first: its cache is the warmest.
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
    """-> the value; what is no JSON stays a text, so that one damaged row does not hide the others."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def postgres_address(url: str) -> dict[str, Any]:
    """-> what psycopg connects to: of several servers the one that can be written, whichever that is by then."""
    parsed = make_url(url)
    _, given = parsed.get_dialect()().create_connect_args(parsed)
    several = {"target_session_attrs": "read-write"} if "," in str(given.get("host", "")) else {}
    return {**_PATIENCE, **several, **given}


def lock(session: Session, *names: str, shared: bool = False) -> None:
    """Holds `names`, taken in this order, until the transaction ends: no other transaction that asks for one of them
    runs beside, or none but those that share it."""
    if session.get_bind().dialect.name == "postgresql":
        keys = [int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True) for name in names]
        session.connection().execute(_LOCK_SHARED if shared else _LOCK, {"keys": keys})
    # On SQLite a transaction that writes is alone.


def insert(session: Session, table: Any) -> sqlite.Insert | postgresql.Insert:
    """-> an INSERT in the words of the session's database, which knows ON CONFLICT."""
    return sqlite.insert(table) if session.get_bind().dialect.name == "sqlite" else postgresql.insert(table)


def _prepare_postgres(durable: bool, connection: Any, _record: Any) -> None:
    connection.execute("SET jit = off")  # compiling a question of ours takes far longer than answering it
    if not durable:
        connection.execute("SET synchronous_commit = off")
    connection.commit()


def _leave_read_only(context: ExceptionContext) -> None:
    """A server that takes no writes any more may have been demoted: all connections are recreated."""
    if _sqlstate(context.original_exception) == _READ_ONLY:
        context.is_disconnect = True


def _prepare_sqlite(foreign_keys: bool, path: str | None, connection: Any, record: Any) -> None:
    connection.isolation_level = None  # BEGIN is ours, below
    keys = f"foreign_keys={'ON' if foreign_keys else 'OFF'}"
    # What it can take a statement back with is of no use after a crash, so it needs no file.
    for pragma in ("journal_mode=WAL", "temp_store=MEMORY", keys):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("SELECT 1 FROM sqlite_master").close()  # opens the -wal, which stays until the last one closes
    if path and os.path.exists(path):  # and is not in memory
        files = (path, f"{path}-wal")
        record.info["files"] = {file: _identity(file) for file in files}


def _begin_sqlite(connection: Connection) -> None:
    """A writer takes its lock at once: taken later, it fails as soon as another wrote meanwhile."""
    _refuse_moved(connection)
    options = connection.get_execution_options()
    writing = options.get("writing")
    if writing:
        # FULL syncs at the commit, NORMAL leaves that to the next one that does.
        wanted = {
            "synchronous": "FULL" if options.get("durable", True) else "NORMAL",
            "busy_timeout": int(options.get("wait", _BUSY) * 10) * 100,
        }
        for name, value in wanted.items():
            if connection.info.get(name) != value:  # it stays as it was set
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
    """-> whether it is the database that can't be used, and not what was asked of it."""
    # A file that is none of SQLite's, or a broken one, has no kind of its own.
    known = isinstance(error, (OperationalError, InterfaceError)) or type(error) is DatabaseError
    return known or (_sqlstate(error.orig) or "").startswith(_NOT_NOW)


def _sqlstate(error: BaseException | None) -> str | None:
    return getattr(error, "sqlstate", None)
