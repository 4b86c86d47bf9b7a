"""Upgrades a database to the tables of this version. Safe if several servers start at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, func, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError

from torchtriage.errors import TriageError
from torchtriage.package_data import data_folder
from torchtriage.storage.database import StorageUnavailable, broken, connect
from torchtriage.storage.file_permissions import make_file, make_folder

MIGRATIONS = data_folder("migrations")
_LOCK = 0x746F726368  # the key of our advisory lock; any number that other programs on the server do not use


class WrongVersion(TriageError):
    """This version cannot work with the database."""

    code = "wrong_database_version"


def upgrade(url: str, revision: str = "head") -> None:
    """Creates the database if it is missing and upgrades it to `revision`, completely or not at all.

    Raises WrongVersion if a newer torchtriage made it, and StorageUnavailable if it cannot be reached.
    """
    with _alone(url) as connection:
        config, found = configuration(connection), current(connection)
        if revision != "head" or found != head():
            _refuse_newer(found)
            command.upgrade(config, revision)


def downgrade(url: str, revision: str) -> None:
    """Reverts migrations down to `revision`; `base` is the empty database. Raises the errors of `upgrade`."""
    with _alone(url) as connection:
        command.downgrade(configuration(connection), revision)


def check(url: str) -> None:
    """Raises WrongVersion if the database does not have the tables of this version."""
    with _alone(url) as connection:
        found = current(connection)
    if found != head():
        _refuse_newer(found)
        raise WrongVersion(
            f"the database is at {found or 'nothing'}, this version needs {head()}: run `torchtriage db upgrade`"
        )


def missing(url: str) -> str | None:
    """Returns a sentence about tables in torchtriage.storage.tables that no migration creates, or None."""
    with _alone(url) as connection:
        try:
            command.check(configuration(connection))
        except CommandError as error:
            return str(error)
    return None


def configuration(connection: Connection) -> Config:
    """Returns Alembic's configuration for a connection."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def current(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


@cache
def head() -> str:
    """Returns the revision of this version's tables. Cached, because finding it compiles every migration."""
    found = ScriptDirectory(str(MIGRATIONS)).get_current_head()
    assert found is not None
    return found


def _refuse_newer(found: str | None) -> None:
    """Raises WrongVersion if this version has no migration to the given revision."""
    known = {script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()}
    if found is not None and found not in known:
        raise WrongVersion(
            f"the database is at {found}, newer than this torchtriage supports ({head()}): use a newer version"
        )


@contextmanager
def _alone(url: str) -> Iterator[Connection]:
    """A transaction during which no other server migrates."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite" and parsed.database:
        try:
            make_folder(Path(parsed.database).parent)
        except OSError as error:
            raise StorageUnavailable(f"cannot create the database's folder: {error}") from error
        with suppress(OSError):  # SQLite reports the error
            make_file(Path(parsed.database))
    # SQLite changes a table by replacing it; foreign keys would delete the rows that refer to it
    engine = connect(url, foreign_keys=False)
    try:
        with engine.connect().execution_options(writing=True) as connection, connection.begin():
            if engine.dialect.name == "postgresql":
                connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
            yield connection
    except DBAPIError as error:
        if not broken(error):
            raise
        reason = str(error.orig).strip().split("\n")[0]
        raise StorageUnavailable(f"the database is unavailable: {reason}") from error
    except CommandError as error:
        raise WrongVersion(f"the database belongs to another version of torchtriage: {error}") from error
    finally:
        engine.dispose()
