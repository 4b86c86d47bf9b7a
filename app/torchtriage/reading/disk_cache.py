"""Files of the user's cache folder: written whole, and read only where nobody else can have written them.

What lies there is loaded as code would be: pickles, compiled patterns. A root whose HOME is still another user's must
not run what that user put there, so a folder or file of others is as if it were not there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_MOST_KEPT = 18  # files of one kind: those that were used last


def read(path: Path) -> bytes:
    """-> what was kept at `path`. Raises OSError where nothing was, or where others may write it."""
    with _own_folder(path.parent) as folder:
        handle = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
        with open(handle, "rb") as file:
            _refuse_others(handle, path)
            with suppress(OSError):  # of a folder that is only read
                os.utime(handle)  # so that what is used stays, however much is written beside it
            return file.read()


def keep(path: Path, content: bytes) -> None:
    """Writes a file of the cache whole or not at all; parallel starts may write the same one.

    Where it can't be written, or others may write there, nothing is: it works as well, only slower to start.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _own_folder(path.parent) as folder:
            _write(folder, path.name, content)
            _forget_old(folder, path.name.partition("-")[0])
    except OSError:
        return


@contextmanager
def _own_folder(path: Path) -> Iterator[int]:
    """Gives the folder as a descriptor, so that what was looked at is what is used."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _refuse_others(folder, path)
        yield folder
    finally:
        os.close(folder)


def _refuse_others(handle: int, path: Path) -> None:
    found = os.fstat(handle)
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"{path}: others may write it")


def _write(folder: int, name: str, content: bytes) -> None:
    part = f"{name}.{os.urandom(8).hex()}"
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
    try:
        with open(handle, "wb") as file:
            file.write(content)
        os.replace(part, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(part, dir_fd=folder)
        raise


def _forget_old(folder: int, kind: str) -> None:
    """Removes what older knowledge and versions left in the cache; of each kind, those that were used last stay."""
    same_kind = [name for name in os.listdir(folder) if name.startswith(f"{kind}-")]
    last_used = sorted(same_kind, key=lambda name: os.stat(name, dir_fd=folder).st_mtime, reverse=True)
    for name in last_used[_MOST_KEPT:]:
        os.unlink(name, dir_fd=folder)
