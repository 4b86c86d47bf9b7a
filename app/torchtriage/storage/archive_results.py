"""The folder of a bulk triage's results, on disk or at `s3://BUCKET/PREFIX`. Files are read and written as a whole."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from torchtriage.errors import BadInput
from torchtriage.storage.blob_writer import store_errors
from torchtriage.storage.s3_objects import S3Objects

_LOCK = ".lock"
_PART = ".part"


class ShardFolder:
    """Can be sent to other processes: it contains only the URL."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._root = None if "://" in url else Path(url)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Creates the folder and locks it against other runs. Raises BadInput if another run has the lock, and
        StorageUnavailable.

        An object store needs no lock: two runs there only do the same work twice.
        """
        if self._root is None:
            yield
            return
        with store_errors():
            self._root.mkdir(parents=True, exist_ok=True)
            lock = os.open(self._root / _LOCK, os.O_CREAT | os.O_RDWR, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise BadInput(f"{self.url}: another run is writing there") from None
        finally:
            os.close(lock)

    def names(self) -> set[str]:
        """Returns the names of the finished files. Raises StorageUnavailable."""
        with store_errors():
            if self._root is not None:
                return {name for name in os.listdir(self._root) if name != _LOCK and not name.endswith(_PART)}
            return {found.key for page in self._objects.pages() for found in page}

    def write(self, name: str, data: bytes) -> None:
        """Writes a file, all of it or nothing. On return it is durable. Raises StorageUnavailable."""
        with store_errors():
            if self._root is None:
                self._objects.put(name, data)
                return
            part = self._root / f"{name}{_PART}"
            with part.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.rename(self._root / name)

    def remove(self, name: str) -> None:
        """Deletes a file. Raises StorageUnavailable."""
        with store_errors():
            if self._root is None:
                self._objects.remove(name)
            else:
                (self._root / name).unlink(missing_ok=True)

    @cached_property
    def _objects(self) -> S3Objects:
        return S3Objects(self.url)
