"""The database: an address in, transactions out. What SQLite and Postgres do differently starts here."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

from sqlalchemy import Connection, create_engine, event, select, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Engine, make_url
from sqlalchemy.exc import DatabaseError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session
from sqlalchemy.pool import QueuePool

from app.errors import StorageUnavailable as StorageUnavailable

# With a server that is cut off, which the system alone waits for for hours: seconds, and the last one milliseconds.
_PATIENCE = {"connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3,
             "tcp_user_timeout": 30_000}  # fmt: skip
_BUSY = 30  # seconds to wait for another process's write
_LOCK, _LOCK_SHARED = (
    text(f"SELECT pg_advisory_xact_lock{kind}(key) FROM unnest(CAST(:keys AS bigint[])) AS key")
    for kind in ("", "_shared")
)


class Database:
    """A pool of connections. Opens nothing until the first transaction."""

    def __init__(self, url: str) -> None:
        self.engine = connect(url)
        self._writers = {
            durable: self.engine.execution_options(writing=True, durable=durable) for durable in (True, False)
        }
        # SQLite has one writer; the threads of this process queue here, in turn, and not in its busy loop.
        self._turn = threading.Lock() if self.is_sqlite else None

    @property
    def is_sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def transaction(self, durable: bool = True) -> Iterator[Session]:
        """A transaction that writes; commits at the end, takes everything back on an error.

        One that is not `durable` can be lost, whole, in a power loss: for what can be worked out again.
        Raises StorageUnavailable where the database can't be reached or written.
        """
        with self._turn or nullcontext(), _told(), Session(self._writers[durable]) as session, session.begin():
            if not durable and not self.is_sqlite:
                session.execute(text("SET LOCAL synchronous_commit = off"))
            yield session

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A transaction that only reads. Raises StorageUnavailable where the database can't be reached."""
        with _told(), Session(self.engine) as session:
            yield session

    def check(self) -> None:
        """Raises StorageUnavailable where the database does not answer."""
        with self.reading() as session:
            session.execute(select(1))

    def close(self) -> None:
        self.engine.dispose()


def connect(url: str, foreign_keys: bool = True) -> Engine:
    """-> an engine for `url`; on SQLite a connection with the option `writing` takes the lock as it begins."""
    if make_url(url).get_backend_name() != "sqlite":
        engine = create_engine(url, pool_pre_ping=True, pool_size=10, max_overflow=30, connect_args=_PATIENCE)
        event.listen(engine, "connect", _prepare_postgres)
        return engine
    several = {"timeout": _BUSY, "check_same_thread": False}
    # The connection that was used last is taken first: its cache is the warmest.
    engine = create_engine(
        url, poolclass=QueuePool, pool_size=10, max_overflow=40, pool_use_lifo=True, connect_args=several
    )
    event.listen(engine, "connect", partial(_prepare_sqlite, foreign_keys))
    event.listen(engine, "begin", _begin_sqlite)
    return engine


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


def _prepare_postgres(connection: Any, _record: Any) -> None:
    connection.execute("SET jit = off")  # compiling a question of ours takes far longer than answering it
    connection.commit()


def _prepare_sqlite(foreign_keys: bool, connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # BEGIN is ours, below
    keys = f"foreign_keys={'ON' if foreign_keys else 'OFF'}"
    for pragma in (f"busy_timeout={_BUSY * 1000}", "journal_mode=WAL", keys):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    """A writer takes its lock at once: taken later, it fails as soon as another wrote meanwhile."""
    options = connection.get_execution_options()
    writing = options.get("writing")
    if writing:
        # FULL syncs at the commit, NORMAL leaves that to the next one that does.
        connection.exec_driver_sql(f"PRAGMA synchronous={'FULL' if options.get('durable', True) else 'NORMAL'}")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def broken(error: DBAPIError) -> bool:
    """-> whether it is the database that can't be used, and not what was asked of it."""
    # A file that is none of SQLite's, or a broken one, has no kind of its own.
    return isinstance(error, (OperationalError, InterfaceError)) or type(error) is DatabaseError


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except PoolTimeout as error:
        raise StorageUnavailable("the database can't be used now; try again later") from error
    except DBAPIError as error:
        if broken(error):
            raise StorageUnavailable("the database can't be used now; try again later") from error
        if not error.connection_invalidated:
            raise
        raise StorageUnavailable("the connection to the database was lost; try again later") from error
