"""Which of a few words stand in many lines: one scan for all that wait for one, as most lines hold none."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from app.domain.line import Line
from app.parsing.environment.kinship import BEGIN_WORDS
from app.reading.scan import Scanner
from app.triage import ranks, sections

Said = frozenset[str]
_WORDS = (*ranks.WORDS, *ranks.AGENT, *sections.MARKS, *BEGIN_WORDS)


def said(lines: Iterable[Line]) -> Said:
    """-> those of the words that the texts of the lines hold, in letters of either kind."""
    texts = "\n".join([line.text for line in lines])
    return frozenset(_WORDS[index] for index in _scanner().which(texts.encode("utf-8", "replace")))


@cache
def _scanner() -> Scanner:
    return Scanner(lambda: [f"(?i){re.escape(word)}".encode() for word in _WORDS], once=True)
