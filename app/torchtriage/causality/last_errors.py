"""The last words of a run that no entry knows: lines at its end whose writer called them an error."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice

from torchtriage.causality.hang_detection import standstill
from torchtriage.domain.event import Event, EventSource
from torchtriage.domain.line import START, Line
from torchtriage.facts import Environment

_TAIL = 40  # lines of a file's end in which a run that is known to have failed says why
_VERY_END = 5  # lines; where nothing else tells of a failure, an error stands no further from the end
_MOST = 3
_MOST_FILES = 1024
# A level as loggers write it: `ERROR: …`, `[ERROR] …`, `… - trainer - ERROR - …`, `E0501 09:00:00 …`, `fatal: …`.
_ERROR = re.compile(
    r"^[\[(<*\s]{0,4}(?:ERROR|CRITICAL|FATAL(?: ERROR)?|PANIC|[Ff]atal(?: error)?|[Ee]rror|panic)[\])>*]{0,3}\s?[:|\]-]"
    r"|^\[?(?:ERROR|CRITICAL|FATAL)\]?[ :]\s*\S"
    r"|^.{0,80}?[\s\[|(:-](?:ERROR|CRITICAL|FATAL)(?:\]|\)|:|\s[|:-]|\s{2}|$| \[| [\w.]+:\d+)"
    r"|^[EF]\d{4} \d\d:\d\d:\d\d|^Error executing job with overrides: "
    r"|\"(?:level|levelname|severity)\": ?\"(?:ERROR|error|CRITICAL|critical|FATAL|fatal)\""
)
_BY_STREAM = '"textPayload"'  # Cloud Logging gives all that a container writes to stderr one severity
# What tells only that something ended, or is no failure of the run: launchers, trackers, counters, probes.
_IDLE = re.compile(
    r"(?i)exit(?:ed|s)?(?: with)?(?: exit| error| return)? (?:code|status)|returned? (?:non-?zero|code)"
    r"|^srun: |^slurm|^wandb: |mlflow|tensorboard"
    r"|(?:errors?|count|failed)['\"]?\s?[:=]\s?0\b|error[ _-]rate"
    r"|retry|skipp|will be retried|Unable to register|falling back|not recommended"
    # of several kernels that Inductor tries, some do not fit; a controller of Kubernetes tries again
    r"|inductor[/.]select_algorithm|benchmark choice|reconciler error|the object has been modified"
)


class LastWords:
    """Feed it every kept line, many at once; it keeps the last ones of each file."""

    def __init__(self) -> None:
        self._tails: dict[int, deque[tuple[Line, bool]]] = {}

    def feed(self, read: Sequence[tuple[Line, bool]]) -> None:
        """Takes lines of one file, each with whether an extractor or an entry has read it."""
        told = list(islice((each for each in reversed(read) if each[0].text.strip()), _TAIL))
        if not told:
            return
        file = told[0][0].position.file
        tail = self._tails.get(file)
        if tail is None:
            if len(self._tails) >= _MOST_FILES:
                return
            tail = self._tails[file] = deque(maxlen=_TAIL)
        tail.extend(reversed(told))

    def standing_still(self, environment: Environment) -> Iterator[Event]:
        """Yields an event for each file at whose end only a monitor goes on to print."""
        if environment.well or environment.wound_up:
            return
        for tail in self._tails.values():
            event = standstill([line for line, _ in tail], environment.progress)
            if event is not None:
                yield event

    def events(self, environment: Environment, failed: bool) -> Iterator[Event]:
        """Yields an event for the first lines of each file's end that are errors by their level.

        `failed`: something else says that the run failed, so that less near the end will do, and output of other
        ranks may stand behind.
        """
        if not failed and (environment.well or environment.wound_up):
            return
        for tail in self._tails.values():
            lines = [line for line, claimed in tail if not claimed]
            if not failed:
                since = max((place for place in environment.progress if place <= tail[-1][0].position), default=START)
                lines = [line for line in lines[-_VERY_END:] if line.position > since]
            told = (line for line in lines if _is_error(line))
            for line in islice(told, _MOST):
                yield Event.at(line, line.text.strip(), EventSource.TRAILING_ERROR)


def _is_error(line: Line) -> bool:
    """-> whether the writer of a line called it an error; the level may stand in what was taken off or around it."""
    around = "" if _BY_STREAM in line.raw else line.raw[:300]
    return bool(_ERROR.search(line.text) or _ERROR.search(around)) and not _IDLE.search(line.raw)
