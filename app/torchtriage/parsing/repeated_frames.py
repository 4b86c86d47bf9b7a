"""Puts back the frames that the reader left out: those of a traceback that are equal to an earlier one's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from torchtriage.domain.event import Frame
from torchtriage.domain.line import START, Line, Position

Frames = tuple[list[Frame], list[Line]]  # and the innermost one's own lines


@dataclass(slots=True)
class RepeatedFrames:
    """The frames that were read, by how many lines of a file stood between a traceback's head and its exception.

    The reader (app/torchtriage/reading/traceback_dedup.py) leaves frames out where it has read equal ones of the same file. Of how many lines
    they were is all that is left of them; where frames that differ had as many, it is not known which ones they were.
    """

    _read: dict[tuple[str | None, float], tuple[Line, list[Frame], list[Line]] | None] = field(default_factory=dict)
    _last: Position = START  # of the last line that was kept
    _gaps: frozenset[Position] = frozenset()  # of lines behind which lines are missing

    def expect(self, lines: Sequence[Line]) -> None:
        """Takes the next kept lines, before the traceback that they go on with."""
        last = lines[-1].position
        self._gaps = frozenset()
        if last.lines_below(self._last) > len(lines):
            positions = [self._last, *(line.position for line in lines)]
            # `lines_below` written out, as it is asked of each line.
            self._gaps = frozenset(
                above
                for above, below in pairwise(positions)
                if (below[1] - above[1] > 1 and below[0] == above[0]) or below[0] > above[0]
            )
        self._last = last

    def between(self, head: Line, line: Line, frames: list[Frame], place: list[Line]) -> Frames:
        """-> the frames between the head of a traceback and the line of its exception: those that were read, else those
        that were left out, as lines of this traceback."""
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
    """-> a line below the head `first`, as it is below the head of an equal traceback, behind that one's label."""
    label = head.raw.removesuffix(head.text)
    return head._replace(
        number=head.number + line.number - first.number,
        position=head.position.down(line.position.line - first.position.line),
        text=line.text, raw=label + line.text,
    )  # fmt: skip
