"""Ensures that only one server uses a SQLite database, by a lock file beside it. The system releases the lock when the
process ends."""

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
_MAX_BYTES = 200  # maximum bytes of the lock holder's description


class DatabaseInUse(TriageError):
    """Another server uses this database and triages its incidents."""


@contextmanager
def exclusive_use(url: str) -> Iterator[None]:
    """Locks the database inside the `with` block. Does nothing on Postgres, which allows many servers.

    Raises DatabaseInUse, and TriageError if the lock file cannot be written.
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
        holder = os.pread(lock, _MAX_BYTES, 0).decode(errors="replace") or "another process"
        raise DatabaseInUse(
            f"{path.with_suffix('')} is in use by another server ({holder}); SQLite allows one server: "
            "stop it, or set another TRIAGE_DATA_DIR"
        ) from None
    except OSError as error:  # the file system has no locks
        log.warning("%s can't be locked (%s): make sure that no other server uses this database", path, error.strerror)
        return
    with suppress(OSError):  # for example on a full disk; only the lock matters
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"process {os.getpid()} on {socket.gethostname()}".encode()[:_MAX_BYTES], 0)
