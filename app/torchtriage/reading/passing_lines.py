"""Lines of a big file that go by unkept and still count: pieces of blocks in, the newest of them and counts out."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

MOST_SPREAD = 128  # lines that stand apart from one another
MOST_RANKS = 4096  # ranks and patterns, of which the newest lines are kept
OF_FIRST_RANKS, FIRST_RANKS = 8, 64  # lines of each, of so many; of further ones the newest line
OF_NO_RANK = 256  # lines of one pattern that name no rank
MOST_KINDS = 256  # kinds of lines that are counted, the newest
RANKS_OF_KIND = 512  # ranks, of each of which one line of a kind is kept
MOST_SAMPLES = 2048  # lines kept of all kinds, beside the first and the last one of each
_COMPARED = 160  # bytes of two lines that are compared
_DIGITS = b"0123456789"
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
        """Yields the lines, with those close above each."""
        return chain(self._spread, *self._of_ranks.values())


@dataclass(slots=True)
class Kind:
    """Lines that are alike but for their digits: how many, and the first one, the last one and one of each rank."""

    first: Piece
    last: Piece
    count: int = 1
    of_ranks: dict[bytes | None, Piece] = field(default_factory=dict)

    @property
    def samples(self) -> list[Piece]:
        """The lines that are kept."""
        return [self.first, *self.of_ranks.values(), self.last]


@dataclass(slots=True)
class CountedLines:
    """Feed it lines in order: it counts those that are alike but for their digits."""

    _kinds: dict[bytes, Kind] = field(default_factory=dict)
    _samples: int = 0

    def add(self, told: Piece, line: bytes, rank: bytes | None) -> None:
        """Takes a line, alone or with those close above it in `told`; `rank` as it is spelled there."""
        key = line[:_COMPARED].translate(None, _DIGITS)
        kind = self._kinds.pop(key, None)
        if kind is None:
            kind = Kind(told, told)
            if len(self._kinds) >= MOST_KINDS:
                del self._kinds[next(iter(self._kinds))]
        else:
            kind.last, kind.count = told, kind.count + 1
        self._kinds[key] = kind  # so that it is the newest
        if rank not in kind.of_ranks and len(kind.of_ranks) < RANKS_OF_KIND and self._samples < MOST_SAMPLES:
            self._samples += 1
            kind.of_ranks[rank] = told

    def __iter__(self) -> Iterator[Kind]:
        yield from self._kinds.values()


def last_line(piece: Piece) -> int:
    """-> the number of the line that counts."""
    return piece[0] + piece[1].count(b"\n")


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
