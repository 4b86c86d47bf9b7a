"""The local folder of files that are being written. Folders that a crash left are recognized and removed."""

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
_YOUNG = 60  # seconds for which a folder may be without its lock file


class UploadSpool:
    """A folder of this process under `parent`. It is deleted when this object is closed or collected, or when the
    process exits normally.

    The process has a lock on a file in it. If the process dies, the system releases the lock.
    """

    def __init__(self, parent: Path) -> None:
        """Raises OSError if the folder cannot be created."""
        parent.mkdir(parents=True, exist_ok=True)
        self._parent = parent
        self._changing = threading.Lock()
        self._create_own_folder()

    def again(self) -> Path:
        """Returns the folder. Creates it again if it was deleted. Raises OSError."""
        with self._changing:
            if not self.folder.exists():
                log.warning("%s was missing; created it again", self.folder)
                self._parent.mkdir(exist_ok=True)
                self.close()
                self._create_own_folder()
            return self.folder

    def sweep(self) -> None:
        """Deletes the folders of dead processes. Logs those that cannot be deleted."""
        for folder in self._parent.iterdir():
            try:
                if folder != self.folder and _is_abandoned(folder):
                    shutil.rmtree(folder)
            except FileNotFoundError:
                pass  # another process has deleted it
            except OSError as error:
                log.warning("cannot remove %s: %s", folder, error.strerror)

    def _create_own_folder(self) -> None:
        self.folder, lock = _own_folder(self._parent)
        self.close = weakref.finalize(self, _leave, self.folder, lock)


def _own_folder(parent: Path) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(dir=parent))
        lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        if _locked(lock) and (folder / _LOCK).exists():
            return folder, lock
        os.close(lock)  # meanwhile another process took this folder for an abandoned one


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
