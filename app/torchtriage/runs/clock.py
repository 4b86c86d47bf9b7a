"""Remembers which time each part of a log has."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from torchtriage.domain.line import Line, Position

_MAX_TIMES = 100_000  # times kept of a run


@dataclass(slots=True)
class Clock:
    """Remembers which time each part of a log has. Call `feed` with the kept lines in order, many lines of one file at
    a time."""

    _positions: list[Position] = field(default_factory=list)
    _times: list[str] = field(default_factory=list)

    def feed(self, lines: list[Line]) -> None:
        if len(self._times) >= _MAX_TIMES:
            return
        for line in lines:
            if line.time and (not self._times or self._times[-1] != line.time):
                self._positions.append(line.position)
                self._times.append(line.time)

    def at(self, position: Position) -> str | None:
        """Returns the last time in the same file at or above `position`, or None."""
        place = bisect_right(self._positions, position) - 1
        same = place >= 0 and self._positions[place].file == position.file
        return self._times[place] if same else None

    def around(self, position: Position) -> tuple[str | None, str | None]:
        """Returns the nearest times above and below in the same file, each None if there is none."""
        place = bisect_right(self._positions, position)
        below = place < len(self._positions) and self._positions[place].file == position.file
        return self.at(position), self._times[place] if below else None

    @property
    def year(self) -> int:
        """The year of the first time that includes one."""
        return next((int(time[:4]) for time in self._times if time[:4].isdecimal()), 2000)
