"""The regexes of the collector: most are never needed for a log, so they are compiled when one is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property, lru_cache

import re2

from torchtriage.domain.vocabulary import VocabularyPattern
from torchtriage.lazy_regex import lazy_regex

_LONG_REPEAT = lazy_regex(r"\{1,\d{2,}\}")  # an automaton that counts is large
_PART = lazy_regex(r"\\[sWD\\\[\]^]|\[\^?|\]|\^")  # of a regex: where a set begins and ends, a line's start, escapes
_IN_A_LINE = {r"\s": r"[ \t\f\r]", r"\W": r"[^\w\n]", r"\D": r"[^\d\n]", "[^": r"[^\n", "^": r"\n"}
_BY_CHARACTER = lazy_regex(r"[^\x00-\x7f][?*+{]|\[[^\]]*[^\x00-\x7f]")  # where bytes are no characters
_NUMBER_AT_END = lazy_regex(r"\\d\+(?=\)?(?:\||$))")
_WORD_AT_END = lazy_regex(r"\\S\*$")


class Sign:
    """A regex that a set finds at once, as it is its own key: Python hashes a compiled regex by all of its code."""

    def __init__(self, pattern: str, loose: str | None = None) -> None:
        """`loose`: a regex without look-around that finds at least what `pattern` does, where it is not made from it."""
        self.pattern = pattern
        self._given = loose

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The compiled form."""
        return re.compile(self.pattern)

    @property
    def pointer(self) -> str:
        """A pattern for the scan of many lines at once, above each of which stands a line feed; it finds at least every
        line that shows the sign. Of a number at its end it takes the first digit, of a word nothing: each further
        character would be a match of its own."""
        pointer = _within_lines(_LONG_REPEAT.sub("+", self._loose))
        pointer = _WORD_AT_END.sub("", _NUMBER_AT_END.sub(r"\\d", pointer))
        return f"(*UTF8){pointer}" if _BY_CHARACTER.search(pointer) else pointer

    @cached_property
    def is_pointed_at(self) -> bool:
        """Whether the pointer finds nothing else, so that `shows` need not be asked."""
        return not _LONG_REPEAT.search(self._loose)

    def shows(self, text: str) -> bool:
        """-> whether a text shows the sign, by RE2."""
        return bool(self._quick.search(text.encode("utf-8", "replace")))

    @cached_property
    def _quick(self) -> re2._Regexp:
        return re2.compile(self._loose.encode())

    @cached_property
    def _loose(self) -> str:
        # It only points: RE2 and Hyperscan know no look-around, and long repeats would need much memory.
        plain = re.sub(r"\(\?<?[!=][^)]*\)", "", self.pattern) if self._given is None else self._given
        return re.sub(r"\{0,\d+\}", "*", plain)


def sign_of(patterns: Iterable[VocabularyPattern]) -> Sign:
    """-> the sign that any of these patterns shows. The same one for the same patterns, as its regexes take time to
    compile."""
    patterns = list(patterns)
    return _sign("|".join(item.exact for item in patterns), "|".join(item.loose for item in patterns))


def signs_by_name(patterns: Iterable[VocabularyPattern]) -> dict[str, Sign]:
    """-> the sign of each name that the patterns have, in the order of the names."""
    by_name: dict[str, list[VocabularyPattern]] = {}
    for item in patterns:
        by_name.setdefault(item.name or "", []).append(item)
    return {name: sign_of(items) for name, items in by_name.items()}


@lru_cache(maxsize=256)
def _sign(exact: str, loose: str) -> Sign:
    return Sign(exact, loose)


def _within_lines(pattern: str) -> str:
    """-> the regex, of which a match is part of one line, except the line feed above it: that is what a line's start is
    told by, as Hyperscan loses some matches of patterns with `^`, and of those beside them."""
    inside = False  # of a set

    def one(part: re.Match[str]) -> str:
        nonlocal inside
        told = part[0]
        if inside:
            inside = told != "]"
            return r" \t\f\r" if told == r"\s" else told
        inside = told[0] == "["
        return _IN_A_LINE.get(told, told)

    return _PART.sub(one, pattern)


Shown = frozenset[Sign]  # the signs that a text shows
