"""Protects stored data from other users of the machine by permissions of folders and files."""

from __future__ import annotations

import logging
import stat
from contextlib import suppress
from pathlib import Path

from sqlalchemy.engine import make_url

log = logging.getLogger(__name__)
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_BESIDE = ("", "-wal", "-shm", "-journal")  # SQLite creates these files with the permissions of the database


def make_private(data_dir: Path, database: str) -> None:
    """Removes other users' permissions from the data folder and, on SQLite, from the database files. Creates the folder
    if it is missing. Logs what was accessible, and what could not be protected."""
    with suppress(OSError):  # the code that needs the folder reports the error
        make_folder(data_dir)
    parsed = make_url(database)
    files = [f"{parsed.database}{end}" for end in _BESIDE] if parsed.get_backend_name() == "sqlite" else []
    closed, problems = list[str](), list[str]()
    for path in (data_dir, *map(Path, files)):
        try:
            if _close(path):
                closed.append(str(path))
        except FileNotFoundError:
            continue
        except OSError as error:
            problems.append(f"{path} ({error.strerror})")
    if closed:
        log.info("other users could read %s; removed their access", ", ".join(closed))
    if problems:
        log.warning("other users can read %s", ", ".join(problems))


def make_folder(path: Path) -> None:
    """Creates a folder for its owner only. An existing folder does not change. Raises OSError."""
    path.mkdir(0o700, parents=True, exist_ok=True)


def make_file(path: Path) -> None:
    """Creates an empty file for its owner only. An existing file does not change. Raises OSError."""
    path.touch(0o600)


def _close(path: Path) -> bool:
    """Removes other users' permissions. Returns whether there were any. Raises OSError."""
    mode = path.stat().st_mode
    if not mode & _OTHERS:
        return False
    if mode & stat.S_ISVTX:
        raise PermissionError(0, "a folder that all share")  # like /tmp, which other users need
    path.chmod(stat.S_IMODE(mode) & stat.S_IRWXU)
    return True
