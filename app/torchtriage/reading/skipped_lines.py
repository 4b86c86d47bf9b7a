"""Lines in the middle of a big file that are not kept but still used: keeps the newest of them, and counts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

MAX_SPREAD_LINES = 128  # lines that are kept at a distance from each other
MAX_RANKS = 4096  # pairs of rank and pattern whose newest lines are kept
OF_FIRST_RANKS, FIRST_RANKS = 8, 64  # lines of each pair, for so many pairs; of further pairs, the newest line
OF_NO_RANK = 256  # lines of one pattern without a rank
MAX_KINDS = 256  # kinds of lines that are counted, the newest ones
RANKS_OF_KIND = 512  # ranks of which one line of a kind is kept
MAX_SAMPLES = 2048  # lines kept of all kinds, besides the first and last of each
_COMPARED = 160  # bytes of two lines that are compared
_DIGITS = b"0123456789"
NumberedPiece = tuple[
    int, bytes
]  # number of the first line, and whole lines as bytes; the last line is the one that matters
Who = tuple[bytes | None, int]  # the rank as printed in the line, and the pattern that matches the line


def kept_count(who: Who, known: int) -> int:
    """Returns how many lines are kept of one rank and pattern if so many others are `known`."""
    return OF_NO_RANK if who[0] is None else OF_FIRST_RANKS if known < FIRST_RANKS else 1


@dataclass(slots=True)
class NewestLines:
    """Call `add` with lines in order. Keeps the newest ones of each rank, and some spread over the file. So neither
    frequent lines nor those of one late rank displace the others."""

    _spread: deque[NumberedPiece] = field(default_factory=lambda: deque(maxlen=MAX_SPREAD_LINES))
    _of_ranks: dict[Who, deque[NumberedPiece]] = field(default_factory=dict)

    def add(self, number: int, piece: bytes, who: Who, spread: bool) -> None:
        """Adds a line with the lines shortly before it. `spread` is true if it is the last one of its part of the
        file."""
        numbered = number, piece
        if spread:
            self._spread.append(numbered)
        known = self._of_ranks.get(who)
        if known is None and len(self._of_ranks) < MAX_RANKS:
            known = self._of_ranks[who] = deque(maxlen=kept_count(who, len(self._of_ranks)))
        if known is not None:
            known.append(numbered)

    def __iter__(self) -> Iterator[NumberedPiece]:
        """Yields the kept lines, each with the lines shortly before it."""
        return chain(self._spread, *self._of_ranks.values())


@dataclass(slots=True)
class SimilarLines:
    """Lines that differ only in digits: their number, the first, the last, and one of each rank."""

    first: NumberedPiece
    last: NumberedPiece
    count: int = 1
    of_ranks: dict[bytes | None, NumberedPiece] = field(default_factory=dict)

    @property
    def samples(self) -> list[NumberedPiece]:
        """The lines that are kept."""
        return [self.first, *self.of_ranks.values(), self.last]


@dataclass(slots=True)
class CountedLines:
    """Call `add` with lines in order. Counts lines that differ only in digits."""

    _kinds: dict[bytes, SimilarLines] = field(default_factory=dict)
    _samples: int = 0

    def add(self, piece: NumberedPiece, line: bytes, rank: bytes | None) -> None:
        """Adds a line. `piece` is the line, alone or with the lines shortly before it. `rank` is as printed in the
        line."""
        key = line[:_COMPARED].translate(None, _DIGITS)
        kind = self._kinds.pop(key, None)
        if kind is None:
            kind = SimilarLines(piece, piece)
            if len(self._kinds) >= MAX_KINDS:
                del self._kinds[next(iter(self._kinds))]
        else:
            kind.last, kind.count = piece, kind.count + 1
        self._kinds[key] = kind  # moves it to the end, as the newest
        if rank not in kind.of_ranks and len(kind.of_ranks) < RANKS_OF_KIND and self._samples < MAX_SAMPLES:
            self._samples += 1
            kind.of_ranks[rank] = piece

    def __iter__(self) -> Iterator[SimilarLines]:
        yield from self._kinds.values()


def last_line(piece: NumberedPiece) -> int:
    """Returns the number of the line that matters."""
    return piece[0] + piece[1].count(b"\n")


def joined(pieces: list[NumberedPiece]) -> Iterator[NumberedPiece]:
    """Yields the pieces in order without repeated lines. Adjacent pieces become one."""
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
