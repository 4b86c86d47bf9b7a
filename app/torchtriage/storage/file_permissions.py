"""Protects stored data from other users of the machine: permissions of folders and files."""

from __future__ import annotations

import logging
import stat
from contextlib import suppress
from pathlib import Path

from sqlalchemy.engine import make_url

log = logging.getLogger(__name__)
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_BESIDE = ("", "-wal", "-shm", "-journal")  # SQLite gives a new one of these the rights of the database


def make_private(data_dir: Path, database: str) -> None:
    """Takes the rights of others from the data folder and, on SQLite, from the database and its files; makes the folder
    where it is not there. One line of the log tells what was open, or could not be closed."""
    with suppress(OSError):  # whoever needs the folder says why it can't be made
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
    """Makes a folder that is its owner's alone; one that is there stays as it is. Raises OSError."""
    path.mkdir(0o700, parents=True, exist_ok=True)


def make_file(path: Path) -> None:
    """Makes an empty file that is its owner's alone; one that is there stays as it is. Raises OSError."""
    path.touch(0o600)


def _close(path: Path) -> bool:
    """-> whether others had rights. Raises OSError."""
    mode = path.stat().st_mode
    if not mode & _OTHERS:
        return False
    if mode & stat.S_ISVTX:
        raise PermissionError(0, "a folder that all share")  # as /tmp, which others need
    path.chmod(stat.S_IMODE(mode) & stat.S_IRWXU)
    return True
