"""A Postgres server whose data stays in a folder, with its default settings except for fsync."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.postgres import PostgresServer, _give, find_programs

_NAME = "million"


class _Kept(PostgresServer):
    """The data is in an existing folder. The socket needs a short path, so it has its own folder."""

    def __init__(self, programs: Path, data: Path) -> None:
        super().__init__(programs)
        self._data = data

    @contextmanager
    def database(self) -> Iterator[str]:
        """The database, created if it does not exist, and kept."""
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
    """Gives the URL of a database whose data is in `folder`. The server stops at the end of the `with` block."""
    programs = find_programs()
    assert programs is not None
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with _Kept(programs, folder) as server, server.database() as url:
        yield url
