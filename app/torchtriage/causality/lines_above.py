"""What the program itself printed: the first lines of a run, and those that are above each of its failures."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from torchtriage.domain.line import Line, Position

ABOVE = 48  # lines kept above a failure
OPENING = 600  # first lines of a file, in which a program prints its options
_MOST_OPENING = 1600  # of all files
LONGEST = 2000  # characters of a line that are kept
_RAW = attrgetter("raw")
_MOST = 64  # failures; half of them the first ones, the others the newest
Above = Mapping[Position, tuple[Line, ...]]


@dataclass(slots=True)
class LinesAbove:
    """Feed it every kept line that no extractor reads, and `mark` where something begins that one does. Memory stays
    within bounds whatever the log's size."""

    opening: list[Line] = field(default_factory=list)
    _left: int = OPENING
    _last: deque[Line] = field(default_factory=lambda: deque(maxlen=ABOVE))
    _first: dict[Position, tuple[Line, ...]] = field(default_factory=dict)
    _newest: dict[Position, tuple[Line, ...]] = field(default_factory=dict)
    _marked: tuple[Line, ...] | None = None  # the lines as they were marked last, unless others came since

    def feed(self, lines: Sequence[Line]) -> None:
        """Takes lines of one file, in order."""
        if not lines:
            return
        if self._last and self._last[-1].position.file != lines[0].position.file:
            self._last.clear()
            self._left = min(OPENING, _MOST_OPENING - len(self.opening))
        if self._left > 0:
            self.opening += _short(lines[: self._left])
            self._left -= len(lines)
        self._last.extend(lines[-ABOVE:])
        self._marked = None

    def mark(self, position: Position) -> None:
        """Keeps the lines above a position at which a failure begins."""
        if self._marked is None:
            self._marked = tuple(_short(self._last))
        if len(self._first) < _MOST // 2:
            self._first[position] = self._marked
            return
        self._newest[position] = self._marked
        if len(self._newest) > _MOST // 2:
            del self._newest[next(iter(self._newest))]

    def kept(self) -> Above:
        """-> the lines above each failure, by the position at which it begins."""
        return self._first | self._newest


def above(kept: Above, position: Position) -> tuple[Line, ...]:
    """-> the lines that were kept above what begins nearest above a position in the same file."""
    known = [begins for begins in kept if begins <= position and begins.file == position.file]
    return tuple(line for line in kept[max(known)] if line.position < position) if known else ()


def moved(kept: Above, to: Callable[[Position], Position]) -> Above:
    """-> the lines with whole files moved in the order of the run."""
    return {
        to(position): tuple(line._replace(position=to(line.position)) for line in lines)
        for position, lines in kept.items()
    }


def _short(lines: Collection[Line]) -> Collection[Line]:
    """-> the lines, most of which are short."""
    if not lines or max(map(len, map(_RAW, lines))) <= LONGEST:
        return lines
    return [line if len(line.raw) <= LONGEST else _cut(line) for line in lines]


def _cut(line: Line) -> Line:
    """-> the first characters of a very long line."""
    return line._replace(raw=line.raw[:LONGEST], text=line.text[:LONGEST])
