"""The regexes of the collector. Each is compiled at its first use, because most logs need few of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property, lru_cache

import re2

from torchtriage.domain.vocabulary import VocabularyPattern
from torchtriage.lazy_regex import lazy_regex

_LONG_REPEAT = lazy_regex(r"\{1,\d{2,}\}")  # long repeats need a large automaton
# parts of a regex that matter for line ends: start and end of a set, start of a line, escapes
_PART = lazy_regex(r"\\[sWD\\\[\]^]|\[\^?|\]|\^")
_IN_A_LINE = {r"\s": r"[ \t\f\r]", r"\W": r"[^\w\n]", r"\D": r"[^\d\n]", "[^": r"[^\n", "^": r"\n"}
# regexes in which bytes cannot stand for characters
_BY_CHARACTER = lazy_regex(r"[^\x00-\x7f][?*+{]|\[[^\]]*[^\x00-\x7f]")
_NUMBER_AT_END = lazy_regex(r"\\d\+(?=\)?(?:\||$))")
_WORD_AT_END = lazy_regex(r"\\S\*$")


class ScanRegex:
    """A regex that can be a key of sets and dicts by identity. Python would hash a compiled regex by its whole code."""

    def __init__(self, pattern: str, loose: str | None = None) -> None:
        """`loose` is a regex without look-around that matches at least what `pattern` does. It is derived from
        `pattern` if it is not given."""
        self.pattern = pattern
        self._given = loose

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The compiled regex."""
        return re.compile(self.pattern)

    @property
    def pointer(self) -> str:
        """A pattern for scanning many lines at once, each with a line feed before it. It finds at least every line that
        matches the regex. It ends after the first digit of a final number, and before a final word, because each further
        character would be a match of its own."""
        pointer = _within_lines(_LONG_REPEAT.sub("+", self._loose))
        pointer = _WORD_AT_END.sub("", _NUMBER_AT_END.sub(r"\\d", pointer))
        return f"(*UTF8){pointer}" if _BY_CHARACTER.search(pointer) else pointer

    @cached_property
    def is_exact(self) -> bool:
        """Whether the pointer finds only lines that match, so that `matches` is not needed."""
        return not _LONG_REPEAT.search(self._loose)

    def matches(self, text: str) -> bool:
        """Returns whether a text matches the regex. Uses RE2."""
        return bool(self._quick.search(text.encode("utf-8", "replace")))

    @cached_property
    def _quick(self) -> re2._Regexp:
        return re2.compile(self._loose.encode())

    @cached_property
    def _loose(self) -> str:
        # It only proposes lines. RE2 and Hyperscan have no look-around, and long repeats would need much memory.
        plain = re.sub(r"\(\?<?[!=][^)]*\)", "", self.pattern) if self._given is None else self._given
        return re.sub(r"\{0,\d+\}", "*", plain)


def scan_regex_of(patterns: Iterable[VocabularyPattern]) -> ScanRegex:
    """Returns a regex that matches any of these patterns. Cached, because compiling takes time."""
    patterns = list(patterns)
    return _scan_regex("|".join(item.exact for item in patterns), "|".join(item.loose for item in patterns))


def regexes_by_name(patterns: Iterable[VocabularyPattern]) -> dict[str, ScanRegex]:
    """Returns the regexes of named patterns, by name and in the order of the names."""
    by_name: dict[str, list[VocabularyPattern]] = {}
    for item in patterns:
        by_name.setdefault(item.name or "", []).append(item)
    return {name: scan_regex_of(items) for name, items in by_name.items()}


@lru_cache(maxsize=256)
def _scan_regex(exact: str, loose: str) -> ScanRegex:
    return ScanRegex(exact, loose)


def _within_lines(pattern: str) -> str:
    """Returns the regex changed so that a match stays in one line. `^` becomes the line feed before the line, because
    Hyperscan misses some matches of patterns with `^` and of patterns next to them."""
    inside = False  # whether this is inside a set

    def one(part: re.Match[str]) -> str:
        nonlocal inside
        piece = part[0]
        if inside:
            inside = piece != "]"
            return r" \t\f\r" if piece == r"\s" else piece
        inside = piece[0] == "["
        return _IN_A_LINE.get(piece, piece)

    return _PART.sub(one, pattern)


MatchedRegexes = frozenset[ScanRegex]  # the regexes that match a text
