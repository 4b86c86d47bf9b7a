"""The local folder of files that are being written; what a crash left in it is told apart and swept."""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import tempfile
import threading
import time
import weakref
from pathlib import Path

log = logging.getLogger(__name__)
_LOCK = "lock"
_YOUNG = 60  # seconds in which a folder without its lock may still get it


class UploadSpool:
    """A folder of this process's own under `parent`. It is gone when this is closed, garbage or the process ends well.

    The process holds a lock in it, which the system takes away when it ends otherwise.
    """

    def __init__(self, parent: Path) -> None:
        """Raises OSError where nothing can be made."""
        parent.mkdir(parents=True, exist_ok=True)
        self._parent = parent
        self._changing = threading.Lock()
        self._own()

    def again(self) -> Path:
        """-> the folder, made again where somebody took it away. Raises OSError."""
        with self._changing:
            if not self.folder.exists():
                log.warning("%s was missing; created it again", self.folder)
                self._parent.mkdir(exist_ok=True)
                self.close()
                self._own()
            return self.folder

    def sweep(self) -> None:
        """Removes the folders of processes that are no more. What is none of ours stays, and is told."""
        for folder in self._parent.iterdir():
            try:
                if folder != self.folder and _is_abandoned(folder):
                    shutil.rmtree(folder)
            except FileNotFoundError:
                pass  # another process was quicker
            except OSError as error:
                log.warning("%s is left as it is, it can't be swept: %s", folder, error.strerror)

    def _own(self) -> None:
        self.folder, lock = _own_folder(self._parent)
        self.close = weakref.finalize(self, _leave, self.folder, lock)


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
