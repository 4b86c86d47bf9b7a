"""A line of a training log, with its prefix stripped."""

from __future__ import annotations

from math import inf
from typing import NamedTuple


class Position(NamedTuple):
    """Where a line is in a run: the number of its file, in the order of names, and the number of the line in that file.

    Positions are compared in the order in which the run is read. The pieces of a rotated log count as one file with
    continuous line numbers.
    """

    file: int
    line: int

    def down(self, lines: int) -> Position:
        """Returns the position that many lines further down in the same file."""
        return Position(self.file, self.line + lines)

    def lines_below(self, other: Position) -> float:
        """Returns how many lines this is below `other`. The result is negative if it is above, and infinite in another
        file."""
        if self.file == other.file:
            return self.line - other.line
        return inf if self.file > other.file else -inf

    @property
    def file_start(self) -> Position:
        """The position above the first line of the same file."""
        return Position(self.file, 0)

    @property
    def file_end(self) -> Position:
        """The position below all lines of the same file."""
        return Position(self.file + 1, 0)


START = Position(0, 0)  # above all lines of a run


class Line(NamedTuple):
    """One line of one file of a run.

    `number` counts from 1 in `file`. `raw` is the whole line, decoded. `text` is the message without prefixes, colors
    and carriage returns. `position` is the place in the whole run. Values that the line does not show are None. This is
    a tuple because there are many lines: making a frozen dataclass takes five times as long.
    """

    number: int
    raw: str
    text: str
    position: Position
    file: str | None = None
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    time: str | None = None
    stream: str = ""
    attempt: int = 0
    pod: str | None = None
    node: int | None = None  # node rank of its host in the run
