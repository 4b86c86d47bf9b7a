"""The default folder for a user's data. It has its own module because every command needs it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def default_data_dir(environment: Mapping[str, str]) -> Path:
    """Returns the folder for a user's data on this platform."""
    home = environment.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(home).expanduser() / "torchtriage"
