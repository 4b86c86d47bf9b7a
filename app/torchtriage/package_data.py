"""Folders that the package brings along: a name in, the folder's path out.

In a wheel they lie inside the package; in a checkout they are top-level folders, where contributors look for them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

# As importlib.resources says, which a start of the command line would wait 5 ms for.
_PACKAGE = Path(__file__).resolve().parent


def data_folder(name: Literal["docs", "knowledge_base", "migrations"]) -> Path:
    """-> the folder. The package must be unpacked on a disk, as pip does it."""
    packaged = _PACKAGE / name
    return packaged if packaged.is_dir() else _PACKAGE.parents[1] / name
