"""What the raw scan looks for in place of a sign: something simpler that is in every line the sign is in."""

from __future__ import annotations

import re
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

_SPELLED_OTHERWISE = frozenset(map(ord, '\n\t"\\'))  # by JSON
_SHORTEST = 5  # characters; a shorter literal is in too many lines
_BOUNDED = re.compile(r"(\[[^\]]+\]|(?<!\\)\.|\\[dwsDWS])\{(\d+),(\d+)\}")
_LONG_REPEAT = 32


def pointer(pattern: str) -> str:
    """-> a pattern for the scan that finds at least every line in which `pattern` (a regex) is found.

    Literals are what Hyperscan is fast at, so it is the longest one that the pattern demands, or one for each of its
    alternatives. Where there is none it is the pattern itself, widened.
    """
    try:
        tree = parser.parse(pattern)
    except re.error:
        return _widened(pattern)  # RE2 has forms that Python does not know.
    literals = _demanded(list(tree))
    if literals and all(len(literal) >= _SHORTEST for literal in literals):
        flag = "(?i)" if tree.state.flags & re.IGNORECASE or "(?i" in pattern else ""
        return flag + "|".join(re.escape(literal).replace(r"\ ", " ") for literal in literals)
    return _widened(pattern)


def unanchored(pattern: str) -> str:
    """-> the pattern without `^`: in a raw line a prefix may stand before the text."""
    return re.sub(r"(?<![\\\[])\^", "", pattern)


def _demanded(tokens: list[tuple[Any, Any]]) -> list[str]:
    """-> literals of which every match holds at least one; the longest there are, empty where there are none."""
    best: list[str] = []
    run = ""
    for code, value in [*tokens, (None, None)]:
        if code is codes.LITERAL and value < 128 and value not in _SPELLED_OTHERWISE:
            run += chr(value)
            continue
        best = max(best, [run] if run else [], key=_worth)
        run = ""
        if code is codes.SUBPATTERN:
            best = max(best, _demanded(list(value[3])), key=_worth)
        elif code is codes.BRANCH:
            alternatives = [_demanded(list(alternative)) for alternative in value[1]]
            if all(alternatives):
                best = max(best, [literal for each in alternatives for literal in each], key=_worth)
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT) and value[0] >= 1:
            best = max(best, _demanded(list(value[2])), key=_worth)
    return best


def _worth(literals: list[str]) -> int:
    return min(map(len, literals), default=0)


def _widened(pattern: str) -> str:
    """-> the pattern unanchored, and long bounded repeats unbounded: they make compiling a hundred times slower."""

    def unbounded(found: re.Match[str]) -> str:
        return found[0] if int(found[3]) <= _LONG_REPEAT else found[1] + "*+"[found[2] != "0"]

    return _BOUNDED.sub(unbounded, unanchored(pattern))
