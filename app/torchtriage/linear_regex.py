"""Compiles the regexes of entries with RE2 and caches them, because each log needs the same hundreds of regexes."""

from __future__ import annotations

from functools import lru_cache

import re2


@lru_cache(maxsize=16384)
def linear_regex(pattern: str) -> re2._Regexp:
    """Returns the compiled regex. Its `^` and `$` match at each line. Raises re2.error if RE2 rejects it."""
    return re2.compile(f"(?m){pattern}")


def found_in(patterns: tuple[str, ...], text: str) -> frozenset[str]:
    """Returns which of the patterns match somewhere in a text. The text is read only once, whatever the number of
    patterns. Raises re2.error if RE2 rejects a pattern."""
    return frozenset(patterns[index] for index in _set_of(patterns).Match(text) or ())


@lru_cache(maxsize=16)
def _set_of(patterns: tuple[str, ...]) -> re2.Set:
    together = re2.Set.SearchSet()
    for pattern in patterns:
        together.Add(f"(?m){pattern}")
    together.Compile()
    return together
