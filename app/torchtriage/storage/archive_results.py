"""The folder of a bulk triage's results, on disk or at `s3://BUCKET/PREFIX`: whole files in, whole files there."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from torchtriage.errors import BadInput
from torchtriage.storage.blob_writer import told
from torchtriage.storage.s3_objects import S3Objects

_LOCK = ".lock"
_PART = ".part"


class ShardFolder:
    """Travels to other processes as its address."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._root = None if "://" in url else Path(url)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Makes the folder and keeps other runs away from it, where it is on disk. Raises BadInput, StorageUnavailable.

        On an object store nothing needs it: there two runs only do the same work twice.
        """
        if self._root is None:
            yield
            return
        with told():
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
        """-> the files that are there, those that a crash left unfinished aside. Raises StorageUnavailable."""
        with told():
            if self._root is not None:
                return {name for name in os.listdir(self._root) if name != _LOCK and not name.endswith(_PART)}
            return {found.key for page in self._objects.pages() for found in page}

    def write(self, name: str, data: bytes) -> None:
        """All of it or nothing; once this returns it survives a power loss. Raises StorageUnavailable."""
        with told():
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
        """Raises StorageUnavailable."""
        with told():
            if self._root is None:
                self._objects.remove(name)
            else:
                (self._root / name).unlink(missing_ok=True)

    @cached_property
    def _objects(self) -> S3Objects:
        return S3Objects(self.url)
