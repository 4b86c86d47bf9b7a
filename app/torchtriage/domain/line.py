"""A line of a training log, with its prefix stripped."""

from __future__ import annotations

from math import inf
from typing import NamedTuple


class Position(NamedTuple):
    """Where a line is in a run: the number of its file, in name order, and of the line among those of that file.

    Positions compare as the run is read. The pieces of a rotated log are one file, whose lines go on being counted.
    """

    file: int
    line: int

    def down(self, lines: int) -> Position:
        """-> the position that many lines further down in the same file."""
        return Position(self.file, self.line + lines)

    def lines_below(self, other: Position) -> float:
        """-> how many lines it is below `other`; below zero above it, infinite in another file."""
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

    `number` counts from 1 in `file`; `raw` is the line as it stands, decoded; `text` is what its writer printed,
    without prefixes, colours and carriage returns. `position` is where it is in the whole run.
    What the line does not tell is None. A tuple, as they are many: a frozen dataclass takes five times as long to make.
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
    node: int | None = None  # the rank of its host among the run's hosts
