"""Syncs files to disk, so that they survive a power loss."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from torchtriage.storage.blob_writer import concurrently

_SYNC_ALL_FROM = 64  # files; from this number on, syncing the whole file system is faster


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
