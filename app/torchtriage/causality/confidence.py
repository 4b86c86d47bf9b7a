"""Computes how sure a root cause is, from several kinds of evidence. An entry cannot rate itself. See
docs/confidence.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchtriage.causality.clock_offsets import ahead
from torchtriage.causality.consequences import causes, explained_by
from torchtriage.causality.grades import Grade, grade
from torchtriage.causality.thresholds import (
    AGREEING_RANKS,
    ALONE_BEFORE,
    AT_MOST_LIKELY,
    AT_MOST_POSSIBLE,
    CERTAIN,
    LIKELY,
    UNNAMED,
)
from torchtriage.causality.tool_reports import is_state
from torchtriage.domain.entry import Sign
from torchtriage.domain.event import EventSource, Raised
from torchtriage.facts.log_classifier import is_written_by_person
from torchtriage.lazy_regex import lazy_regex
from torchtriage.matching.matcher import Match
from torchtriage.reading.prefixes.times import seconds_between
from torchtriage.runs.findings import Finding
from torchtriage.runs.run_reading import Reading

_PACKAGE = lazy_regex(r"(?:site|dist)-packages")  # not Python's own modules, which check their arguments
_ALL = 100.0  # the similarity to a known message that is cut, wrapped or escaped, and otherwise the same


def score(finding: Finding, live: Iterable[Finding], reading: Reading) -> float:
    """Returns how sure it is that the finding's entry names what failed, from 0 to 1. `live` are the findings of the
    run.

    The confidence of the entry's sign counts most. The result is lower in these cases: a library raised words that any
    program may print; the message is only similar to a known one; the failure shows no trace of the entry's framework;
    a person only quotes the error; another failure may be the cause as well; or a tool reports the state of a device
    without saying when it began.
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
        _is_described_by_person(finding, reading)
        or not _shows_area(match, finding, live, reading)
        or _has_rival(finding, live, reading)
    ):
        return min(match.score, AT_MOST_LIKELY)
    return match.score


def word(points: float) -> str:
    """Returns certain, likely or possible."""
    return "certain" if points >= CERTAIN else "likely" if points >= LIKELY else "possible"


def _raised_by_library(match: Match, finding: Finding) -> bool:
    """Returns whether an installed package raised an exception that matches only by general words (a broad sign) or
    only by its type (a catch-all entry). For a catch-all it also returns True if the log does not show whose code
    raised it."""
    raised = match.raised or finding.event.exception
    if not match.broad or raised is None:
        return False
    if match.entry.catch_all:
        return not raised.frames or _is_from_package(raised)
    return _is_from_package(raised) and not _searches_frames(match.sign)


def _is_from_package(raised: Raised) -> bool:
    """Returns whether the last frame is an installed package's. A frame that only looks up an attribute, as nn.Module's
    `__getattr__`, does not count: the line that asked for the attribute is wrong."""
    frames = raised.frames_without_lookups
    return bool(frames) and _PACKAGE.search(frames[-1].file) is not None


def _searches_frames(sign: Sign | None) -> bool:
    return sign is not None and sign.where == "frame"


def _is_described_by_person(finding: Finding, reading: Reading) -> bool:
    """Returns whether a person describes the error in a sentence, and no line that a program printed shows it."""
    paste = reading.paste or ()
    if finding.event.source is not EventSource.QUOTED_ERROR:
        return False
    prose = reading.matcher.document_regexes.prose
    return is_written_by_person(paste, reading.facts.regexes) or any(prose.search(line.text) for line in paste)


def _is_reworded(match: Match) -> bool:
    """Returns whether a message is only similar to the entry's message. Other messages can contain the same words."""
    return match.near is not None and not (match.near.is_same and match.near.similarity >= _ALL)


def _shows_area(match: Match, finding: Finding, live: Iterable[Finding], reading: Reading) -> bool:
    """Returns whether the failure shows a mark of its entry's area, such as the name of the framework. Returns True for
    areas without marks. If an installed package raised the exception, the mark must be in its own message or frames,
    because anything else in the log did not fail. Otherwise all failures and the head of the log count."""
    raised = match.raised or finding.event.exception
    texts = _own_texts(finding) if raised is not None and _is_from_package(raised) else _texts(live, reading)
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


def _has_rival(finding: Finding, live: tuple[Finding, ...], reading: Reading) -> bool:
    """Returns whether another failure of the attempt may be the cause as well. It must be at least as strong, or be an
    uncaught exception above this one. The finding's entry must not explain it, and neither the ranks nor the times may
    separate the two."""
    if len(finding.ranks) >= AGREEING_RANKS:
        return False
    known = causes((finding,))
    rivals = (other for other in live if _may_be_the_cause(other, finding) and explained_by(other, known) is None)
    return any(not _failed_alone_before(finding, rival, reading) for rival in rivals)


def _may_be_the_cause(other: Finding, finding: Finding) -> bool:
    if other is finding or other.attempt != finding.attempt or other.entry == finding.entry:
        return False
    strength = grade(other)
    uncaught = strength is Grade.UNNAMED and other.fatal and other.event.source is EventSource.TRACEBACK
    return strength >= grade(finding) or (uncaught and other.position < finding.position)


def _failed_alone_before(finding: Finding, rival: Finding, reading: Reading) -> bool:
    """Returns whether one rank failed long before the rival did, by the times of both lines."""
    seconds = seconds_between(finding.event.time, rival.event.time)
    alone = len(finding.ranks) == 1 and rival.ranks and not finding.ranks & rival.ranks
    if seconds is None or not alone:
        return False
    return seconds + ahead(finding.event, reading) - ahead(rival.event, reading) >= ALONE_BEFORE
