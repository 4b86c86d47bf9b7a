"""How sure a root cause is, from kinds of evidence: its own words, whose code raised it, and whether the log shows what
its entry is about. No entry says it of itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from torchtriage.causality.findings import Finding
from torchtriage.causality.reading import Reading
from torchtriage.domain.entry import Sign
from torchtriage.domain.vocabulary import VocabularyPattern
from torchtriage.matching.matcher import Match

CERTAIN, LIKELY = 0.9, 0.55  # the least score of a verdict that is called so
UNNAMED = 0.5  # no entry knows the message
_AT_MOST_LIKELY, _AT_MOST_POSSIBLE = 0.72, 0.5
_AREA_MARKS = "area-marks"
_PACKAGE = re.compile("(?:site|dist)-packages")  # Python's own modules refuse what the program gives them
_ALL = 100.0  # the similarity of a message that is cut, wrapped or escaped and says nothing else


def score(finding: Finding, live: Iterable[Finding], reading: Reading) -> float:
    """-> from 0 to 1, how sure it is that the finding's entry is what failed. `live` are the findings of the run.

    What its sign is worth by itself is the most. Words that any program may print count less where a library raised
    them: no sign knows what that library means by them. So do words that are only near to a known message, and those
    of a framework of which the log shows nothing.
    """
    match = finding.match
    if match is None:
        return UNNAMED
    if _raised_by_library(match, finding) or _is_reworded(match):
        return min(match.score, _AT_MOST_POSSIBLE)
    if not _shows_area(match.entry.area, live, reading):
        return min(match.score, _AT_MOST_LIKELY)
    return match.score


def word(points: float) -> str:
    """-> certain, likely or possible."""
    return "certain" if points >= CERTAIN else "likely" if points >= LIKELY else "possible"


def _raised_by_library(match: Match, finding: Finding) -> bool:
    """-> whether a broad sign saw no more than words, or a catch-all no more than that something was raised, and the
    code that raised it is an installed package's."""
    raised = match.raised or finding.event.exception
    if not match.broad or raised is None or not raised.frames or not _PACKAGE.search(raised.frames[-1].file):
        return False
    return match.entry.catch_all or not _looks_at_frames(match.sign)


def _looks_at_frames(sign: Sign | None) -> bool:
    return sign is not None and sign.where == "frame"


def _is_reworded(match: Match) -> bool:
    return match.near is not None and match.near.similarity < _ALL


def _shows_area(area: str, live: Iterable[Finding], reading: Reading) -> bool:
    """-> whether the failures or the head of the log hold a mark of the area; True for areas that have none."""
    marks = _marks(reading.matcher.patterns.vocabulary.patterns(_AREA_MARKS)).get(area)
    return marks is None or any(map(marks.search, _texts(live, reading)))


@lru_cache(maxsize=4)
def _marks(patterns: tuple[VocabularyPattern, ...]) -> dict[str, re.Pattern[str]]:
    return {pattern.name: re.compile(pattern.exact) for pattern in patterns if pattern.name}


def _texts(live: Iterable[Finding], reading: Reading) -> Iterator[str]:
    for finding in live:
        yield finding.event.text
        for raised in finding.event.chain:
            yield from (raised.type, raised.message)
            yield from (frame.file for frame in raised.frames)
            yield from (frame.code for frame in raised.frames)
        yield from (line.raw for line in finding.event.lines)
    yield from (line.raw for line in (*reading.head, *reading.opening, *(reading.paste or ())))
