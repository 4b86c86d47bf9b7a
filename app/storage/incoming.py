"""The local folder of files that are being written; what a crash left in it is told apart and swept."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
import weakref
from contextlib import suppress
from pathlib import Path

_LOCK = "lock"
_YOUNG = 60  # seconds in which a folder without its lock may still get it


class Incoming:
    """A folder of this process's own under `parent`. It is gone when this is closed, garbage or the process ends well.

    The process holds a lock in it, which the system takes away when it ends otherwise.
    """

    def __init__(self, parent: Path) -> None:
        """Raises OSError where nothing can be made."""
        parent.mkdir(parents=True, exist_ok=True)
        self._parent = parent
        self.folder, lock = _own_folder(parent)
        self.close = weakref.finalize(self, _leave, self.folder, lock)

    def sweep(self) -> None:
        """Removes the folders of processes that are no more."""
        for folder in self._parent.iterdir():
            with suppress(FileNotFoundError):
                if folder != self.folder and _is_abandoned(folder):
                    shutil.rmtree(folder)


def _own_folder(parent: Path) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(dir=parent))
        lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        if _locked(lock) and (folder / _LOCK).exists():
            return folder, lock
        os.close(lock)  # another process took this folder for an abandoned one, in the moment between


def _is_abandoned(folder: Path) -> bool:
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR)
    except FileNotFoundError:
        return time.time() - folder.stat().st_mtime > _YOUNG
    try:
        return _locked(lock)
    finally:
        os.close(lock)


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _leave(folder: Path, lock: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)
