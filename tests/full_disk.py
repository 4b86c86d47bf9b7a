"""A real file system of a few megabytes, which a test can fill."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


@contextmanager
def tmpfs(folder: Path, megabytes: int) -> Iterator[Path]:
    """Mounts a separate file system at `folder` inside the `with` block. Skips the test if mounting is not allowed."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no tmpfs can be mounted here, which needs root on Linux: {error}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Fills a file system. Returns the file to delete to free the space again."""
    filling = folder / "filling"
    handle = os.open(filling, os.O_CREAT | os.O_WRONLY)
    for size in (1 << 16, 1 << 12, 1):
        with suppress(OSError):
            while True:
                os.write(handle, bytes(size))
    os.close(handle)
    assert shutil.disk_usage(folder).free == 0
    return filling
