"""Lines of a big file that go by unkept and still count: pieces of blocks in, the newest of those lines out."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

MOST_SPREAD = 128  # lines that stand apart from one another
MOST_RANKS = 4096  # ranks and patterns, of which the newest lines are kept
OF_FIRST_RANKS, FIRST_RANKS = 8, 64  # lines of each, of so many; of further ones the newest line
OF_NO_RANK = 256  # lines of one pattern that name no rank
Piece = tuple[int, bytes]  # number of the first line, bytes of whole lines, the last of which is what counts
Who = tuple[bytes | None, int]  # the rank, as it is spelled in the line, and the pattern that the line shows


def most_of(who: Who, known: int) -> int:
    """-> how many lines are kept of one rank and pattern, where so many others are `known`."""
    return OF_NO_RANK if who[0] is None else OF_FIRST_RANKS if known < FIRST_RANKS else 1


@dataclass(slots=True)
class NewestLines:
    """Feed it lines in order: it keeps the newest ones of each rank, and some spread over the file, so that neither what
    is printed often nor what one rank prints late displaces the others."""

    _spread: deque[Piece] = field(default_factory=lambda: deque(maxlen=MOST_SPREAD))
    _of_ranks: dict[Who, deque[Piece]] = field(default_factory=dict)

    def add(self, number: int, piece: bytes, who: Who, spread: bool) -> None:
        """Takes a line with the lines close above it; `spread`: it is the last one of its part of the file."""
        told = number, piece
        if spread:
            self._spread.append(told)
        known = self._of_ranks.get(who)
        if known is None and len(self._of_ranks) < MOST_RANKS:
            known = self._of_ranks[who] = deque(maxlen=most_of(who, len(self._of_ranks)))
        if known is not None:
            known.append(told)

    def __iter__(self) -> Iterator[Piece]:
        """Yields pieces of the file in order, in which no line stands twice."""
        return joined([*self._spread, *chain.from_iterable(self._of_ranks.values())])


def joined(pieces: list[Piece]) -> Iterator[Piece]:
    """Yields pieces in order, in which no line stands twice; those that touch are one."""
    first, lines = 0, list[bytes]()
    for number, piece in sorted(pieces):
        end = first + len(lines)
        if number > end or not lines:
            if lines:
                yield first, b"\n".join(lines)
            first, lines = number, piece.split(b"\n")
        else:
            lines += piece.split(b"\n")[end - number :]
    if lines:
        yield first, b"\n".join(lines)
