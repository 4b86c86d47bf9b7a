"""Keeps what the program itself printed: the first lines of a run, and the lines above each failure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from torchtriage.domain.line import Line, Position

ABOVE = 48  # lines kept above a failure
OPENING = 600  # first lines of a file; a program prints its options there
_MAX_OPENING = 1600  # lines of all files together
MAX_LENGTH = 2000  # characters kept of a line
_RAW = attrgetter("raw")
_MAX_COUNT = 64  # failures; half of them are the first ones, the others the newest
Above = Mapping[Position, tuple[Line, ...]]


@dataclass(slots=True)
class ContextLines:
    """Call `feed` with every kept line that no extractor reads, and `mark` at the first line of what an extractor does
    read. The memory used is limited, whatever the size of the log."""

    opening: list[Line] = field(default_factory=list)
    _left: int = OPENING
    _last: deque[Line] = field(default_factory=lambda: deque(maxlen=ABOVE))
    _first: dict[Position, tuple[Line, ...]] = field(default_factory=dict)
    _newest: dict[Position, tuple[Line, ...]] = field(default_factory=dict)
    _marked: tuple[Line, ...] | None = None  # the lines at the last mark, or None if more lines have followed

    def feed(self, lines: Sequence[Line]) -> None:
        """Takes lines of one file, in order."""
        if not lines:
            return
        if self._last and self._last[-1].position.file != lines[0].position.file:
            self._last.clear()
            self._left = min(OPENING, _MAX_OPENING - len(self.opening))
        if self._left > 0:
            self.opening += _short(lines[: self._left])
            self._left -= len(lines)
        self._last.extend(lines[-ABOVE:])
        self._marked = None

    def mark(self, position: Position) -> None:
        """Keeps the lines above the position at which a failure begins."""
        if self._marked is None:
            self._marked = tuple(_short(self._last))
        if len(self._first) < _MAX_COUNT // 2:
            self._first[position] = self._marked
            return
        self._newest[position] = self._marked
        if len(self._newest) > _MAX_COUNT // 2:
            del self._newest[next(iter(self._newest))]

    def kept(self) -> Above:
        """Returns the lines above each failure, by the position at which it begins."""
        return self._first | self._newest


def above(kept: Above, position: Position) -> tuple[Line, ...]:
    """Returns the lines kept above the last failure that begins at or above a position in the same file."""
    known = [begins for begins in kept if begins <= position and begins.file == position.file]
    return tuple(line for line in kept[max(known)] if line.position < position) if known else ()


def moved(kept: Above, to: Callable[[Position], Position]) -> Above:
    """Returns the lines with the positions that `to` gives, after whole files were reordered."""
    return {
        to(position): tuple(line._replace(position=to(line.position)) for line in lines)
        for position, lines in kept.items()
    }


def _short(lines: Collection[Line]) -> Collection[Line]:
    """Returns the lines, the long ones cut. Most lines are short."""
    if not lines or max(map(len, map(_RAW, lines))) <= MAX_LENGTH:
        return lines
    return [line if len(line.raw) <= MAX_LENGTH else _cut(line) for line in lines]


def _cut(line: Line) -> Line:
    """Returns a very long line cut to its first characters."""
    return line._replace(raw=line.raw[:MAX_LENGTH], text=line.text[:MAX_LENGTH])
