"""Where a user's data is kept if no option says so; a module of its own, as every command asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def default_data_dir(environment: Mapping[str, str]) -> Path:
    """-> the folder for a user's data on this platform."""
    home = environment.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(home).expanduser() / "torchtriage"
