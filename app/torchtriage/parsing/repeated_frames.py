"""Restores the frames that the reader left out because an earlier traceback has the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from torchtriage.domain.event import Frame
from torchtriage.domain.line import START, Line, Position

Frames = tuple[list[Frame], list[Line]]  # and the lines of the innermost frame


@dataclass(slots=True)
class RepeatedFrames:
    """The frames that were read, by the number of lines between the head of a traceback and its exception.

    The reader (app/torchtriage/reading/traceback_dedup.py) leaves frames out if it has read equal ones in the same
    file. Only the number of their lines is then known. If different frames had the same number of lines, it is not
    known which of them were left out.
    """

    _read: dict[tuple[str | None, float], tuple[Line, list[Frame], list[Line]] | None] = field(default_factory=dict)
    _last: Position = START  # the last line that was kept
    _gaps: frozenset[Position] = frozenset()  # lines after which lines are missing

    def expect(self, lines: Sequence[Line]) -> None:
        """Takes the next kept lines, before the traceback that they continue."""
        last = lines[-1].position
        self._gaps = frozenset()
        if last.lines_below(self._last) > len(lines):
            positions = [self._last, *(line.position for line in lines)]
            # This is `lines_below`, written out because it is computed for each line.
            self._gaps = frozenset(
                above
                for above, below in pairwise(positions)
                if (below[1] - above[1] > 1 and below[0] == above[0]) or below[0] > above[0]
            )
        self._last = last

    def between(self, head: Line, line: Line, frames: list[Frame], place: list[Line]) -> Frames:
        """Returns the frames between the head of a traceback and the line of its exception. If these were left out,
        returns the equal frames of an earlier traceback as if they were lines of this one."""
        key = (head.file, line.position.lines_below(head.position))
        if frames:
            known = self._read.setdefault(key, (head, frames, place))
            if known is not None and known[1] != frames:
                self._read[key] = None
            return frames, place
        known = self._read.get(key) if head.position in self._gaps else None
        if known is None:
            return frames, place
        first, frames, place = known
        return list(frames), [_moved(one, first, head) for one in place]


def _moved(line: Line, first: Line, head: Line) -> Line:
    """Returns a line below the head `first`, moved to the same place below another traceback's `head` and with that
    one's prefix."""
    label = head.raw.removesuffix(head.text)
    return head._replace(
        number=head.number + line.number - first.number,
        position=head.position.down(line.position.line - first.position.line),
        text=line.text, raw=label + line.text,
    )  # fmt: skip
