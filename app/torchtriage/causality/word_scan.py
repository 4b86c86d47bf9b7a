"""Which of a few words stand in many lines: one scan for all that wait for one, as most lines hold none."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from torchtriage.domain.line import Line
from torchtriage.facts.line_origin import BEGIN_WORDS
from torchtriage.reading import rank_numbering, sections
from torchtriage.reading.scan import Scanner

Said = frozenset[str]
_WORDS = (*rank_numbering.WORDS, *rank_numbering.AGENT, *sections.MARKS, *BEGIN_WORDS)


def said(lines: Iterable[Line]) -> Said:
    """-> those of the words that the texts of the lines hold, in letters of either kind."""
    texts = "\n".join([line.text for line in lines])
    return frozenset(_WORDS[index] for index in _scanner().which(texts.encode("utf-8", "replace")))


@cache
def _scanner() -> Scanner:
    return Scanner(lambda: [f"(?i){re.escape(word)}".encode() for word in _WORDS], once=True)
