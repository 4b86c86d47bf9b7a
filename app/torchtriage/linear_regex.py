"""The regexes of entries as RE2 compiles them, each once: hundreds are asked for again with every log."""

from __future__ import annotations

from functools import lru_cache

import re2


@lru_cache(maxsize=16384)
def linear_regex(pattern: str) -> re2._Regexp:
    """-> the regex, whose `^` and `$` are those of each line. Raises re2.error where RE2 refuses it."""
    return re2.compile(f"(?m){pattern}")
