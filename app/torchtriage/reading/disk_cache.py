"""Files in the user's cache folder. They are written atomically, and read only if nobody else can have written them.

Their content is loaded like code: pickles and compiled patterns. If root runs with the HOME of another user, it must
not run that user's files. So a file or folder of another user is treated as missing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_MAX_KEPT = 18  # number of files of one kind that are kept, the last used ones


def read(path: Path) -> bytes:
    """Returns the content of a file in the cache. Raises OSError if it does not exist or others may write it."""
    with _own_folder(path.parent) as folder:
        handle = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
        with open(handle, "rb") as file:
            _check_owner(handle, path)
            with suppress(OSError):  # the folder may be read-only
                os.utime(handle)  # marks the file as used, so that it is kept
            return file.read()


def keep(path: Path, content: bytes) -> None:
    """Writes a file of the cache atomically, because several processes may write the same file when they start.

    If the folder cannot be written, or others may write there, does nothing. Then the next start is slower.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _own_folder(path.parent) as folder:
            _write(folder, path.name, content)
            _remove_old(folder, path.name.partition("-")[0])
    except OSError:
        return


@contextmanager
def _own_folder(path: Path) -> Iterator[int]:
    """Opens the folder as a descriptor, so that the folder that was checked is the one that is used."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _check_owner(folder, path)
        yield folder
    finally:
        os.close(folder)


def _check_owner(handle: int, path: Path) -> None:
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


def _remove_old(folder: int, kind: str) -> None:
    """Removes files of older knowledge and versions from the cache. Keeps the last used files of each kind."""
    same_kind = [name for name in os.listdir(folder) if name.startswith(f"{kind}-")]
    last_used = sorted(same_kind, key=lambda name: os.stat(name, dir_fd=folder).st_mtime, reverse=True)
    for name in last_used[_MAX_KEPT:]:
        os.unlink(name, dir_fd=folder)
