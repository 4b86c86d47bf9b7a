"""Errors at the end of a run that no entry knows: the last lines of its files in, events out."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from torchtriage.causality.thresholds import ERRORS_ALONE_WITHIN, ERRORS_TOLD, ERRORS_WITHIN
from torchtriage.domain.event import Event, EventSource
from torchtriage.domain.line import START, Line
from torchtriage.facts import Environment
from torchtriage.facts.ending_signs import EndingSigns
from torchtriage.lazy_regex import lazy_regex

_MOST_FILES = 1024
FileEnd = tuple[tuple[Line, bool], ...]  # its last lines, each with whether an extractor or an entry has read it
# A level as loggers write it: `ERROR: …`, `[ERROR] …`, `… - trainer - ERROR - …`, `E0501 09:00:00 …`, `fatal: …`.
_ERROR = lazy_regex(
    r"^[\[(<*\s]{0,4}(?:ERROR|CRITICAL|FATAL(?: ERROR)?|PANIC|[Ff]atal(?: error)?|[Ee]rror|panic)[\])>*]{0,3}\s?[:|\]-]"
    r"|^\[?(?:ERROR|CRITICAL|FATAL)\]?[ :]\s*\S"
    r"|^.{0,80}?[\s\[|(:-](?:ERROR|CRITICAL|FATAL)(?:\]|\)|:|\s[|:-]|\s{2}|$| \[| [\w.]+:\d+)"
    r"|^[EF]\d{4} \d\d:\d\d:\d\d|^Error executing job with overrides: "
    r"|\"(?:level|levelname|severity)\": ?\"(?:ERROR|error|CRITICAL|critical|FATAL|fatal)\""
)
_BY_STREAM = '"textPayload"'  # Cloud Logging gives all that a container writes to stderr one severity


class FileEnds:
    """Feed it every kept line, many at once; it keeps the last ones of each file."""

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
            if len(self._ends) >= _MOST_FILES:
                return
            end = self._ends[file] = deque(maxlen=ERRORS_WITHIN)
        end.extend(reversed(last))

    def ends(self) -> tuple[FileEnd, ...]:
        """-> the last lines of each file."""
        return tuple(map(tuple, self._ends.values()))


def trailing_errors(
    ends: Iterable[FileEnd], environment: Environment, signs: EndingSigns, failed: bool
) -> Iterator[Event]:
    """Yields an event for the first lines of each file's end that are errors by their level.

    `failed`: something else says that the run failed, so that less near the end will do, and output of other ranks may
    follow.
    """
    if not failed and (environment.well or environment.wound_up):
        return
    for end in ends:
        lines = [line for line, claimed in end if not claimed]
        if not failed:
            since = max((place for place in environment.progress if place <= end[-1][0].position), default=START)
            lines = [line for line in lines[-ERRORS_ALONE_WITHIN:] if line.position > since]
        errors = (line for line in lines if _is_error(line) and not signs.harmless_errors.search(line.raw))
        for line in islice(errors, ERRORS_TOLD):
            yield Event.at(line, line.text.strip(), EventSource.TRAILING_ERROR)


def _is_error(line: Line) -> bool:
    """-> whether the writer of a line called it an error; the level may be in what was stripped or around it."""
    around = "" if _BY_STREAM in line.raw else line.raw[:300]
    return bool(_ERROR.search(line.text) or _ERROR.search(around))
