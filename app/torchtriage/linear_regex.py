"""The regexes of entries as RE2 compiles them, each once: hundreds are asked for again with every log."""

from __future__ import annotations

from functools import lru_cache

import re2


@lru_cache(maxsize=16384)
def linear_regex(pattern: str) -> re2._Regexp:
    """-> the regex, whose `^` and `$` are those of each line. Raises re2.error where RE2 rejects it."""
    return re2.compile(f"(?m){pattern}")


def found_in(patterns: tuple[str, ...], text: str) -> frozenset[str]:
    """-> those of the patterns that are found in a text, which is read once, however many they are. Raises re2.error
    where RE2 rejects one."""
    return frozenset(patterns[index] for index in _set_of(patterns).Match(text) or ())


@lru_cache(maxsize=16)
def _set_of(patterns: tuple[str, ...]) -> re2.Set:
    together = re2.Set.SearchSet()
    for pattern in patterns:
        together.Add(f"(?m){pattern}")
    together.Compile()
    return together
