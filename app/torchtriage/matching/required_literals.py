"""Derives from a regex the literals that every match contains, or a simpler pattern for the scan."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from torchtriage.lazy_regex import lazy_regex

_ESCAPED_BY_JSON = frozenset(map(ord, '\n\t"\\'))
_MIN_LENGTH = 5  # characters; too many lines contain a shorter literal
_RARE = 10  # characters; a longer literal is hardly rarer
_BOUNDED = lazy_regex(r"(\[[^\]]+\]|(?<!\\)\.|\\[dwsDWS])\{(\d+),(\d+)\}")
_LONG_REPEAT = 32
_COMMON = lazy_regex(
    r"(?i)[^a-z]{1,9}| ?(could not|error|exception|failed|failure|fatal|nccl|timed out|timeout|unable|warning) ?|module"
)


@lru_cache(maxsize=8192)  # the same signs are compiled for blocks and for texts
def scan_pattern(pattern: str) -> str:
    """Returns a pattern for the scan that finds at least every line in which the regex `pattern` is found.

    Hyperscan is fastest with literals. So the result is the longest literal that the pattern requires, or one for each
    of its alternatives. If there is none, it is the pattern itself in a wider form.
    """
    try:
        tree = parser.parse(pattern)
    except re.error:
        return _widened(pattern)  # RE2 has syntax that Python does not know
    literals = _best(list(tree))
    if literals and all(len(literal) >= _MIN_LENGTH for literal in literals):
        flag = "(?i)" if tree.state.flags & re.IGNORECASE or "(?i" in pattern else ""
        return flag + "|".join(re.escape(literal).replace(r"\ ", " ") for literal in literals)
    return _widened(pattern)


def required_literals(pattern: str) -> list[list[str]]:
    """Returns lists of lower-case literals. A text that matches `pattern` contains at least one literal of each list.
    The lists with long literals come first, because these are missing most often. Empty if no literal is required.

    Searching literals is much cheaper than compiling the regex, and most lines that the scan proposes do not match.
    """
    try:
        tree = parser.parse(pattern)
    except re.error:
        return []
    every = [literals for literals in _sequence(list(tree)) if all(len(literal) > 1 for literal in literals)]
    lower = {tuple(dict.fromkeys(literal.lower() for literal in literals)): None for literals in every}
    return [list(either) for either in sorted(lower, key=lambda either: -min(map(len, either)))]


def letters_held(pattern: str, text: str) -> int:
    """Returns how many literal characters of a regex are in `text`, a lower-case text that matches it. Of alternatives,
    the longest in the text counts; optional parts count if they are there. So a list of alternative words counts as one
    of them."""
    return _held(_letters(pattern), text) or 0


def has_required(text: str, required: list[list[str]]) -> bool:
    """Returns whether a lower-case text contains the `required_literals` of a pattern. It is called for every pattern
    that a scan proposes, so it uses loops: `any` and `all` take three times as long."""
    for either in required:
        for literal in either:
            if literal in text:
                break
        else:
            return False
    return True


def unanchored(pattern: str) -> str:
    """Returns the pattern without `^`, because a raw line may have a prefix before the text."""
    return re.sub(r"(?<![\\\[])\^", "", pattern)


def _best(tokens: list[tuple[Any, Any]]) -> list[str]:
    """Returns literals of which every match contains at least one; the longest that exist, or empty."""
    return max(_sequence(tokens), key=_worth, default=[])


def _sequence(tokens: list[tuple[Any, Any]]) -> Iterator[list[str]]:
    """Yields lists of literals. Every match contains at least one literal of each list."""
    run: list[tuple[Any, Any]] = []  # the literals directly before, which are continued by each alternative after them
    for code, value in [*tokens, (None, None)]:
        if code is codes.LITERAL and value < 128 and value not in _ESCAPED_BY_JSON:
            run.append((code, value))
            continue
        if run:
            yield ["".join(chr(letter) for _, letter in run)]
        if code is codes.SUBPATTERN:
            yield from _sequence([*run, *value[3]])
        elif code is codes.BRANCH:
            alternatives = [_best([*run, *alternative]) for alternative in value[1]]
            if all(alternatives):
                yield [literal for each in alternatives for literal in each]
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT) and value[0] >= 1:
            yield from _sequence(list(value[2]))
        run = []


class _Either(NamedTuple):
    """Alternative parts of a regex, of which a match contains one, or none if `left_out` is true."""

    parts: tuple[tuple[str | _Either, ...], ...]
    left_out: bool = False


_Letters = tuple[str | _Either, ...]  # what a match contains, in order: runs of letters, and alternatives


@lru_cache(maxsize=8192)  # the same signs match many texts
def _letters(pattern: str) -> _Letters:
    try:
        return _letters_of(parser.parse(pattern))
    except re.error:
        return ()  # RE2 has syntax that Python does not know


def _letters_of(tokens: Iterable[tuple[Any, Any]]) -> _Letters:
    found: list[str | _Either] = []
    run = ""
    for code, value in [*tokens, (None, None)]:
        if code is codes.LITERAL:
            run += chr(value).lower()
            continue
        found += [run] if run else []
        run = ""
        if code is codes.SUBPATTERN:
            found += _letters_of(value[3])
        elif code is codes.BRANCH:
            found.append(_Either(tuple(map(_letters_of, value[1]))))
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            repeated = _letters_of(value[2])
            found += repeated if value[0] else [_Either((repeated,), left_out=True)]
    return tuple(found)


def _held(letters: _Letters, text: str) -> int | None:
    """Returns how many of the letters a text contains, or None if a required one is missing."""
    count = 0
    for part in letters:
        if isinstance(part, str):
            if part not in text:
                return None
            count += len(part)
        else:
            held = [one for each in part.parts if (one := _held(each, text)) is not None]
            if not held and not part.left_out:
                return None
            count += max(held, default=0)
    return count


def _worth(literals: list[str]) -> tuple[bool, bool, int, int, int]:
    """Sort key for lists of literals. Hyperscan compares the last letters of a literal; if there are enough of these, a
    short list is better. A literal that many lines of a failed run contain is better than none."""
    shortest = min(map(len, literals), default=0)
    common = any(_COMMON.fullmatch(literal) for literal in literals)
    return shortest >= _MIN_LENGTH, not common, min(shortest, _RARE), -len(literals), shortest


def _widened(pattern: str) -> str:
    """Returns the pattern without anchors, and with long bounded repeats made unbounded, because they make compiling a
    hundred times slower."""

    def unbounded(found: re.Match[str]) -> str:
        return found[0] if int(found[3]) <= _LONG_REPEAT else found[1] + "*+"[found[2] != "0"]

    return _BOUNDED.sub(unbounded, unanchored(pattern))
