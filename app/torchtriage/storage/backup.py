"""Copies the database while it is in use. The copy has the state of one moment."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy.engine import make_url

from torchtriage.errors import BadInput
from torchtriage.storage.database import StorageUnavailable
from torchtriage.storage.file_permissions import make_file

_PAGES = 1000  # pages per step; other processes can write between steps


def backup(url: str, to: Path) -> int:
    """Copies a SQLite database to the new file `to`: complete, synced and readable only by its owner. Returns its size
    in bytes.

    Raises BadInput for Postgres (use pg_dump) and if `to` exists, and StorageUnavailable; then there is no copy.
    """
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite" or not parsed.database:
        raise BadInput("the database is Postgres: copy it with pg_dump (docs/operating.md)")
    if to.exists():
        raise BadInput(f"{to}: the file exists")
    part = to.with_name(f"{to.name}.part")
    try:
        part.unlink(missing_ok=True)  # left by a copy that was killed
        make_file(part)
        with (
            closing(sqlite3.connect(f"{Path(parsed.database).absolute().as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(part)) as copy,
        ):
            source.backup(copy, pages=_PAGES)
            copy.execute("PRAGMA journal_mode=DELETE")  # one file, without a -wal file
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.rename(to)
    except (sqlite3.Error, OSError) as error:
        part.unlink(missing_ok=True)
        raise StorageUnavailable(f"cannot copy the database to {to}: {error}") from error
    return to.stat().st_size
