"""Keeps the last lines of each file."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice

from torchtriage.domain.line import Line

ERRORS_WITHIN = 40  # lines at the end of a file; a run that is known to have failed says why among them
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
