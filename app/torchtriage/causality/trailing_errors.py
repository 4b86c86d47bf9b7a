"""Finds errors at the end of a run's files that no entry matches."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from torchtriage.causality.thresholds import ERRORS_ALONE_WITHIN, ERRORS_WITHIN, MAX_ERRORS_REPORTED
from torchtriage.domain.event import Event, EventSource
from torchtriage.domain.line import START, Line
from torchtriage.facts import CollectedFacts
from torchtriage.facts.ending_regexes import EndingRegexes

_MAX_FILES = 1024
FileEnd = tuple[tuple[Line, bool], ...]  # the last lines of a file; True if an extractor or an entry has read it


class FileEnds:
    """Call `feed` with every kept line, many at once. It keeps the last lines of each file."""

    def __init__(self) -> None:
        self._ends: dict[int, deque[tuple[Line, bool]]] = {}

    def feed(self, read: Sequence[tuple[Line, bool]]) -> None:
        """Takes lines of one file, each with whether an extractor or an entry has read it."""
        last = list(islice((each for each in reversed(read) if each[0].text.strip()), ERRORS_WITHIN))
        if not last:
            return
        file = last[0][0].position.file
        end = self._ends.get(file)
        if end is None:
            if len(self._ends) >= _MAX_FILES:
                return
            end = self._ends[file] = deque(maxlen=ERRORS_WITHIN)
        end.extend(reversed(last))

    def ends(self) -> tuple[FileEnd, ...]:
        """Returns the last lines of each file."""
        return tuple(map(tuple, self._ends.values()))


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
