"""Folders that the package brings along: a name in, the folder's path out.

In a wheel they lie inside of the package; in a checkout they are top-level folders, where contributors look for them.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Literal


def data_folder(name: Literal["knowledge_base", "migrations"]) -> Path:
    """-> the folder. The package must be unpacked on a disk, as pip does it."""
    package = Path(str(files("torchtriage")))
    packaged = package / name
    return packaged if packaged.is_dir() else package.parents[1] / name
