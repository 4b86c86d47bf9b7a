"""How sure a root cause is, from kinds of evidence. No entry rates itself. docs/confidence.md explains them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchtriage.causality.cascade import Grade, causes, explained_by, grade
from torchtriage.causality.clock_offsets import ahead
from torchtriage.causality.findings import Finding
from torchtriage.causality.reports_beside import is_state
from torchtriage.causality.run_reading import Reading
from torchtriage.causality.thresholds import (
    AGREEING_RANKS,
    ALONE_BEFORE,
    AT_MOST_LIKELY,
    AT_MOST_POSSIBLE,
    CERTAIN,
    LIKELY,
    UNNAMED,
)
from torchtriage.domain.entry import Sign
from torchtriage.domain.event import EventSource, Raised
from torchtriage.facts.log_classifier import is_by_a_person
from torchtriage.lazy_regex import lazy_regex
from torchtriage.matching.matcher import Match
from torchtriage.reading.prefixes.times import seconds_between

_PACKAGE = lazy_regex(r"(?:site|dist)-packages")  # Python's own modules refuse what the program gives them
_ALL = 100.0  # the similarity of a message that is cut, wrapped or escaped and says nothing else


def score(finding: Finding, live: Iterable[Finding], reading: Reading) -> float:
    """-> from 0 to 1, how sure it is that the finding's entry is what failed. `live` are the findings of the run.

    What its sign is worth by itself is the most. Words that any program may print count less where a library raised
    them: no sign knows what that library means by them. So do words that are only near to a known message, those of a
    framework of which the failure shows nothing, those that a person quotes, and those beside another failure that may
    as well be the cause. So does the state of a device that a tool reports without saying since when.
    """
    match, live = finding.match, tuple(live)
    if match is None:
        return UNNAMED
    if _raised_by_library(match, finding) or _is_reworded(match):
        return min(match.score, AT_MOST_POSSIBLE)
    if match.score < CERTAIN:
        return match.score
    if is_state(finding, reading):
        return min(match.score, AT_MOST_LIKELY)
    if (
        _is_told(finding, reading)
        or not _shows_area(match, finding, live, reading)
        or _is_rivalled(finding, live, reading)
    ):
        return min(match.score, AT_MOST_LIKELY)
    return match.score


def word(points: float) -> str:
    """-> certain, likely or possible."""
    return "certain" if points >= CERTAIN else "likely" if points >= LIKELY else "possible"


def _raised_by_library(match: Match, finding: Finding) -> bool:
    """-> whether a broad sign saw no more than words, or a catch-all no more than that something was raised, and the
    code that raised it is an installed package's; of a catch-all also where the log does not tell whose code it is."""
    raised = match.raised or finding.event.exception
    if not match.broad or raised is None:
        return False
    if match.entry.catch_all:
        return not raised.frames or _is_packages(raised)
    return _is_packages(raised) and not _looks_at_frames(match.sign)


def _is_packages(raised: Raised) -> bool:
    return bool(raised.frames) and _PACKAGE.search(raised.frames[-1].file) is not None


def _looks_at_frames(sign: Sign | None) -> bool:
    return sign is not None and sign.where == "frame"


def _is_told(finding: Finding, reading: Reading) -> bool:
    """-> whether a person reports the error in a sentence, and no program's line shows it."""
    paste = reading.paste or ()
    if finding.event.source is not EventSource.QUOTED_ERROR:
        return False
    prose = reading.matcher.document_signs.prose
    return is_by_a_person(paste, reading.environment.signs) or any(prose.search(line.text) for line in paste)


def _is_reworded(match: Match) -> bool:
    """-> whether a message is only like the entry's: whole words of an example can be those of others too."""
    return match.near is not None and not (match.near.is_same and match.near.similarity >= _ALL)


def _shows_area(match: Match, finding: Finding, live: Iterable[Finding], reading: Reading) -> bool:
    """-> whether the failure shows a mark of its entry's area; True for areas that have none. Where an installed
    package raised it, its own message and frames must: what else the log speaks of did not fail. Else all failures and
    the head of the log may."""
    raised = match.raised or finding.event.exception
    texts = _own_texts(finding) if raised is not None and _is_packages(raised) else _texts(live, reading)
    return reading.matcher.area_marks.shown(match.entry.area, texts)


def _texts(live: Iterable[Finding], reading: Reading) -> Iterator[str]:
    for finding in live:
        yield from _own_texts(finding)
    yield from (line.raw for line in (*reading.head, *reading.opening, *(reading.paste or ())))


def _own_texts(finding: Finding) -> Iterator[str]:
    yield finding.event.text
    for raised in finding.event.chain:
        yield from (raised.type, raised.message)
        yield from (frame.file for frame in raised.frames)
        yield from (frame.code for frame in raised.frames)
    yield from (line.raw for line in finding.event.lines)


def _is_rivalled(finding: Finding, live: tuple[Finding, ...], reading: Reading) -> bool:
    """-> whether another failure of the attempt may as well be the cause: it is as strong or, above it, an exception
    that nobody caught; the finding's entry does not explain it; and neither the ranks nor the clock part them."""
    if len(finding.ranks) >= AGREEING_RANKS:
        return False
    known = causes((finding,))
    rivals = (other for other in live if _may_be_the_cause(other, finding) and explained_by(other, known) is None)
    return any(not _is_alone_before(finding, rival, reading) for rival in rivals)


def _may_be_the_cause(other: Finding, finding: Finding) -> bool:
    if other is finding or other.attempt != finding.attempt or other.entry == finding.entry:
        return False
    strength = grade(other)
    uncaught = strength is Grade.UNNAMED and other.fatal and other.event.source is EventSource.TRACEBACK
    return strength >= grade(finding) or (uncaught and other.position < finding.position)


def _is_alone_before(finding: Finding, rival: Finding, reading: Reading) -> bool:
    """-> whether one rank failed long before the rival did, as the clocks before both lines tell."""
    seconds = seconds_between(finding.event.time, rival.event.time)
    alone = len(finding.ranks) == 1 and rival.ranks and not finding.ranks & rival.ranks
    if seconds is None or not alone:
        return False
    return seconds + ahead(finding.event, reading) - ahead(rival.event, reading) >= ALONE_BEFORE
