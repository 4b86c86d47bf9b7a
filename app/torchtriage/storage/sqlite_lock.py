"""On SQLite there is one server a database: it holds a lock beside the file, which the system takes away with it."""

from __future__ import annotations

import fcntl
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy.engine import make_url

from torchtriage.errors import TriageError

log = logging.getLogger(__name__)
_LONGEST = 200  # bytes of what the holder writes about itself


class DatabaseInUse(TriageError):
    """Another server works on this database, and its waiting incidents are that one's."""


@contextmanager
def exclusive_use(url: str) -> Iterator[None]:
    """Nobody else comes through here for this database until it is left. On Postgres there may be many servers.

    Raises DatabaseInUse, and TriageError where the folder can't be written.
    """
    address = make_url(url)
    if address.get_backend_name() != "sqlite" or not address.database:
        yield
        return
    path = Path(f"{Path(address.database).resolve()}.lock")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise TriageError(f"{path} can't be written: {error.strerror}") from None
    try:
        _take(lock, path)
        yield
    finally:
        os.close(lock)


def _take(lock: int, path: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(lock, _LONGEST, 0).decode(errors="replace") or "another process"
        raise DatabaseInUse(
            f"{path.with_suffix('')} is in use by another server ({holder}); SQLite allows one server: "
            "stop it, or set another TRIAGE_DATA_DIR"
        ) from None
    except OSError as error:  # a file system without locks
        log.warning("%s can't be locked (%s): make sure that no other server uses this database", path, error.strerror)
        return
    with suppress(OSError):  # a full disk; the lock is what counts
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"process {os.getpid()} on {socket.gethostname()}".encode()[:_LONGEST], 0)
