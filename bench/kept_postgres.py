"""A Postgres of our own whose data stays in a folder, with the settings that it comes with, but for fsync."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.postgres import PostgresServer, _give, find_programs

_NAME = "million"


class _Kept(PostgresServer):
    """Its data lies in a folder that is there already; the socket, whose path must be short, in one of its own."""

    def __init__(self, programs: Path, data: Path) -> None:
        super().__init__(programs)
        self._data = data

    @contextmanager
    def database(self) -> Iterator[str]:
        """The database, made where it is not there, and kept."""
        if not self._admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", [_NAME]).fetchone():
            self._admin.execute(f"CREATE DATABASE {_NAME}")
        yield f"postgresql+psycopg://postgres@/{_NAME}?host={self._folder}&port=5432"

    def _make_cluster(self) -> None:
        _give(self._as_user, self._data)
        (self._folder / "data").symlink_to(self._data)
        if not (self._data / "PG_VERSION").exists():
            super()._make_cluster()


@contextmanager
def kept_postgres(folder: Path) -> Iterator[str]:
    """-> the URL of a database whose data lies in `folder`; the server ends with this."""
    programs = find_programs()
    assert programs is not None
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with _Kept(programs, folder) as server, server.database() as url:
        yield url
