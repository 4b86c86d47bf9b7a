"""Finds errors at the end of a run's files that no entry matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from torchtriage.causality.thresholds import ERRORS_ALONE_WITHIN, MAX_ERRORS_REPORTED
from torchtriage.domain.event import Event, EventSource
from torchtriage.domain.line import START
from torchtriage.facts import CollectedFacts
from torchtriage.facts.ending_regexes import EndingRegexes
from torchtriage.runs.file_ends import FileEnd


def trailing_errors(
    ends: Iterable[FileEnd], facts: CollectedFacts, regexes: EndingRegexes, failed: bool
) -> Iterator[Event]:
    """Yields an event for the first lines at each file's end whose log level is error.

    `failed` means that something else says that the run failed. Then the error may be further from the end, and output
    of other ranks may follow.
    """
    if not failed and (facts.good_ends or facts.shutdowns):
        return
    for end in ends:
        lines = [line for line, claimed in end if not claimed]
        if not failed:
            since = max((place for place in facts.progress if place <= end[-1][0].position), default=START)
            lines = [line for line in lines[-ERRORS_ALONE_WITHIN:] if line.position > since]
        errors = (line for line in lines if regexes.is_error(line) and not regexes.harmless_errors.search(line.raw))
        for line in islice(errors, MAX_ERRORS_REPORTED):
            yield Event.at(line, line.text.strip(), EventSource.TRAILING_ERROR)
