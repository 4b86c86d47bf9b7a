"""What each option is for, in Chinese; the English sentence stands where the option is declared."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from torchtriage.settings.options import PREFIX


@cache
def option_sentences() -> dict[str, str]:
    """-> the sentences by variable."""
    told = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return {f"{PREFIX}{name.upper()}": sentence for name, sentence in told.items()}
