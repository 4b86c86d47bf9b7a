"""Stored files in a folder of a local disk, by key; and syncing files, so that they survive a power loss."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from torchtriage.storage.blob_writer import concurrently

_SYNC_ALL_FROM = 64  # files; from this number on, syncing the whole file system is faster


class LocalFiles:
    """Has the same methods as `torchtriage.storage.s3_objects.S3Objects`. They raise OSError."""

    def __init__(self, root: Path) -> None:
        """Creates the folder if it is missing."""
        root.mkdir(parents=True, exist_ok=True)
        self._root = root

    def size(self, key: str) -> int:
        return (self._root / key).stat().st_size

    def tail(self, key: str, length: int) -> tuple[int, bytes]:
        """Returns the file's size and its last `length` bytes."""
        with (self._root / key).open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            return size, os.pread(file.fileno(), length, max(0, size - length))

    def part(self, key: str, start: int, end: int) -> bytes:
        """Returns the bytes from `start` up to, not including, `end`; fewer if the file is shorter."""
        with (self._root / key).open("rb", buffering=0) as file:
            pieces = []
            while start < end and (piece := os.pread(file.fileno(), end - start, start)):
                pieces.append(piece)
                start += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def remove(self, key: str) -> None:
        (self._root / key).unlink()

    def listed(self) -> Iterator[list[tuple[str, datetime]]]:
        """Yields (key, time of last change) of all files in subfolders, folder by folder."""
        for folder in sorted(self._root.iterdir()):
            if folder.is_dir():
                yield list(_files_in(folder))


def _files_in(folder: Path) -> Iterator[tuple[str, datetime]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                if entry.is_file():
                    yield f"{folder.name}/{entry.name}", datetime.fromtimestamp(entry.stat().st_mtime, UTC)
            except FileNotFoundError:  # deleted since it was listed
                continue


def sync_files(files: Sequence[Path]) -> None:
    """Syncs files of one folder. Raises OSError."""
    whole = _syncfs() if len(files) >= _SYNC_ALL_FROM else None
    if whole is not None:
        _opened(files[0].parent, whole)
    else:
        concurrently(sync_file, files)


def sync_file(path: Path) -> None:
    """Syncs one file, or the names in one folder. Raises OSError."""
    _opened(path, os.fsync)


def _opened(path: Path, call: Callable[[int], object]) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        call(handle)
    finally:
        os.close(handle)


@cache
def _syncfs() -> Callable[[int], None] | None:
    """Returns syncfs(2) of Linux, which Python does not offer; None on other systems."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None, use_errno=True)

    def call(handle: int) -> None:
        if library.syncfs(handle) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    return call
