"""An archive of logs, in a folder or at `s3://BUCKET/PREFIX`: lists and reads its files. Changes nothing in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from torchtriage.errors import BadInput, UnreadableLog
from torchtriage.storage.blob_writer import store_errors
from torchtriage.storage.s3_objects import ObjectChanged, S3Objects

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class ArchivedLog:
    """A listed file: its key, an etag that changes with its content, and its stored size in bytes."""

    key: str
    etag: str
    bytes: int


class Archive:
    """Can be sent to other processes: it contains only the URL."""

    def __init__(self, url: str) -> None:
        """Raises BadInput if there is no such folder."""
        self.url = url
        self._root = None if "://" in url else Path(url)
        if self._root is not None and not self._root.is_dir():
            raise BadInput(f"{url}: no such folder")

    def listed(self) -> Iterator[ArchivedLog]:
        """Yields every file, always in the same order. Raises StorageUnavailable."""
        with store_errors():
            if self._root is not None:
                yield from _walked(self._root, "")
                return
            for page in self._objects.pages():
                for found in page:
                    yield ArchivedLog(found.key, found.etag or found.changed_at.isoformat(), found.bytes)

    def chunks(self, log: ArchivedLog) -> Iterator[bytes]:
        """Yields a file's bytes. Raises NotFound if it was deleted, UnreadableLog if it has changed or may not be read,
        and StorageUnavailable."""
        with store_errors(log.key):
            try:
                if self._root is not None:
                    yield from _read(self._root / log.key, log.etag)
                else:
                    etag = log.etag if log.etag.startswith(('"', "W/")) else None
                    yield from self._objects.stream(log.key, etag, _CHUNK)
            except PermissionError as error:
                raise UnreadableLog(f"{log.key}: permission denied") from error
            except ObjectChanged as error:
                raise _changed(log.key) from error

    @cached_property
    def _objects(self) -> S3Objects:
        return S3Objects(self.url)


def _walked(root: Path, folder: str) -> Iterator[ArchivedLog]:
    """Yields files sorted by key, as object stores do. Keeps only one list of names per level in memory."""
    with os.scandir(root / folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name + "/" * entry.is_dir(follow_symlinks=False))
    for entry in found:
        key = f"{folder}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _walked(root, f"{key}/")
        elif entry.is_file():
            yield ArchivedLog(key, _etag(entry.stat()), entry.stat().st_size)


def _read(path: Path, etag: str) -> Iterator[bytes]:
    with path.open("rb") as file:
        if _etag(os.fstat(file.fileno())) != etag:
            raise _changed(path.name)
        while chunk := file.read(_CHUNK):
            yield chunk


def _etag(state: os.stat_result) -> str:
    return f"{state.st_mtime_ns:x}-{state.st_size:x}"


def _changed(name: str) -> UnreadableLog:
    return UnreadableLog(f"{name}: it changed after it was listed; the next run reads it again")
