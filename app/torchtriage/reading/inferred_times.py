"""Gives lines without a time the time of a line shortly before. A traceback gets it from the logger's line above it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from torchtriage.domain.line import START, Line, Position

_NEAR = 3  # lines; farther above, too much time may have passed


@dataclass(slots=True)
class TimeInference:
    """Call `with_times` with every kept line of a run, in order."""

    _last: dict[str, tuple[Position, str]] = field(default_factory=dict)  # stream → position and time
    # position of the last line if it is the head of a traceback; known frames below it are left out
    _head: Position = START

    def with_times(self, lines: Sequence[Line]) -> list[Line]:
        """Returns the lines, each with the time of its writer's last line that had one, if that is close above.

        The body of a traceback counts as one line, however long it is.
        """
        if not self._last and not any(map(attrgetter("time"), lines)):
            return list(lines)
        with_times: list[Line] = []
        for line in lines:
            if line.time is not None:
                self._last[line.stream] = line.position, line.time
            elif self._last:
                line = self._near(line)
            with_times.append(line)
        return with_times

    def _near(self, line: Line) -> Line:
        head, self._head = self._head, START
        last = self._last.get(line.stream)
        if last is None or not (0 < line.position.lines_below(last[0]) <= _NEAR or last[0] == head):
            return line
        if line.text[:2] == "  ":
            self._last[line.stream] = line.position, last[1]
        elif line.text.startswith("Traceback ("):
            self._last[line.stream] = line.position, last[1]
            self._head = line.position
        return tuple.__new__(Line, (*line[:8], last[1], *line[9:]))  # `_replace` takes three times as long
