"""The regexes of the collector: most are never needed for a log, so they are compiled when one is."""

from __future__ import annotations

import re
from functools import cached_property

import re2

_LONG_REPEAT = re.compile(r"\{1,\d{2,}\}")  # an automaton that counts is large
_OVER_LINES = re.compile(r"\\[sWD]|\[\^(?![^\]]*\\n)")  # what a line feed can be part of
_BY_CHARACTER = re.compile(r"[^\x00-\x7f][?*+{]|\[[^\]]*[^\x00-\x7f]")  # where bytes are no characters
_NUMBER_AT_END = re.compile(r"\\d\+(?=\)?(?:\||$))")
_LINE_START = re.compile(r"(?<![\\\[])\^")  # Hyperscan loses some matches of patterns with it, and of those beside them
_WORD_AT_END = re.compile(r"\\S\*$")


class Sign:
    """A regex that a set finds at once, as it is its own key: Python hashes a compiled regex by all of its code."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The compiled form."""
        return re.compile(self.pattern)

    @property
    def pointer(self) -> str:
        """A pattern for the scan of many lines at once, which finds at least every line that shows the sign. Of a number
        at its end it takes the first digit, of a word nothing: each further character would be a match of its own."""
        pointer = _LINE_START.sub("", _LONG_REPEAT.sub("+", self._loose))
        pointer = _WORD_AT_END.sub("", _NUMBER_AT_END.sub(r"\\d", pointer))
        return f"(*UTF8){pointer}" if _BY_CHARACTER.search(pointer) else pointer

    @cached_property
    def is_pointed_at(self) -> bool:
        """Whether the pointer finds nothing else, so that `shows` need not be asked."""
        return not any(form.search(self._loose) for form in (_LONG_REPEAT, _OVER_LINES, _LINE_START))

    def shows(self, text: str) -> bool:
        """-> whether a text shows the sign, by RE2."""
        return bool(self._quick.search(text.encode("utf-8", "replace")))

    @cached_property
    def _quick(self) -> re2._Regexp:
        return re2.compile(self._loose.encode())

    @cached_property
    def _loose(self) -> str:
        # It only points: RE2 and Hyperscan know no look-around, and long repeats would need much memory.
        return re.sub(r"\(\?<?[!=][^)]*\)", "", re.sub(r"\{0,\d+\}", "*", self.pattern))


Shown = frozenset[Sign]  # the signs that a text shows
