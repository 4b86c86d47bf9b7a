"""Gives lines without a time that of a line close above: a traceback has it from the logger's line over it."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.domain.line import Line

_NEAR = 3  # lines; farther above, too much may have happened since


@dataclass(slots=True)
class Stamps:
    """Feed it every kept line of a run in order."""

    _last: dict[str, tuple[int, str]] = field(default_factory=dict)  # of a stream: order and time

    def settled(self, line: Line) -> Line:
        """-> the line, with the time of the one that its writer dated last, if that stands close above.

        The body of a traceback counts as one line, however long it is.
        """
        if line.time is not None:
            self._last[line.stream] = line.order, line.time
            return line
        last = self._last.get(line.stream)
        if last is None or not 0 < line.order - last[0] <= _NEAR:
            return line
        if line.text[:2] == "  " or line.text.startswith("Traceback ("):
            self._last[line.stream] = line.order, last[1]
        return line._replace(time=last[1])
