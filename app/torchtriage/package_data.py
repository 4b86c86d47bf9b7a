"""Finds the data folders that belong to the package.

In a wheel they are inside the package. In a checkout they are top-level folders, where contributors look for them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

# importlib.resources gives the same folder, but its import would add 5 ms to the start of the command line.
_PACKAGE = Path(__file__).resolve().parent


def data_folder(name: Literal["docs", "knowledge_base", "migrations"]) -> Path:
    """Returns the folder's path. The package must be unpacked on disk, as pip does it."""
    packaged = _PACKAGE / name
    return packaged if packaged.is_dir() else _PACKAGE.parents[1] / name
