"""Keeps the lines around hits, and the head and the tail of a file; everything else goes by uncopied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from app.reading.scan import Scanner

BEFORE = 3  # lines kept before a hit
AFTER = 12  # lines kept after a hit
AFTER_WIDE = 160  # lines kept after the head of a traceback or a table, whose body has no hits of its own
MOST_HITS = 3000  # of one pattern in one file; what a log says more often than that, it says in its tail as well
MOST_MISSES = 20_000  # places that a pattern's pointer led to in vain, before it is given up for this file
LONGEST_LOOK = 64 << 10  # bytes of a line in which a pattern is looked for
_SAME = 4  # equal tracebacks of different ranks that are read whole
_BODY = 8 << 10  # bytes of a traceback that are compared
_LONGEST_LABEL = 64  # bytes
SAMPLE = 400  # bytes at the end of each block
HEAD = 64 << 10  # bytes at the start of a file that are always kept
TAIL = 128 << 10  # bytes at its end


@dataclass(slots=True)
class Windows:
    """Iterating yields (line number from 1, bytes of the line) in order; a jump in the numbers is a gap.

    `wide` are the scanner's patterns that open something long; `confirms` says whether what the scanner points at,
    a pattern in a line, is really there. `sampled` collects the last bytes of every block
    that went by, as (number of the last line, bytes), for a look at how the run progressed.
    After the iteration `size` (bytes) and `lines` are the size of the file, and `skimmed` the hits that were passed over
    because their pattern had hit too often.
    """

    scanner: Scanner
    wide: frozenset[int]
    confirms: Callable[[int, bytes], bool]
    size: int = 0
    lines: int = 0
    skimmed: int = 0
    _hits: Counter[int] = field(default_factory=Counter)
    _misses: Counter[int] = field(default_factory=Counter)
    _bodies: Counter[int] = field(default_factory=Counter)
    sampled: list[tuple[int, bytes]] = field(default_factory=list)

    def read(self, blocks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
        kept = 0  # the last line that was yielded
        owed = 0  # lines of the next block that belong to the last window
        tail = b""
        for block in blocks:
            first = self.lines + 1
            spans, owed = self._spans(block, owed, self.size < HEAD)
            for number, line in _cut(block, spans, first):
                if number > kept:
                    kept = number
                    yield number, line
            self.lines += block.count(b"\n") + (not block.endswith(b"\n"))
            self.size += len(block)
            self.sampled.append((self.lines, block[-SAMPLE:]))
            tail = block if len(block) >= TAIL else (tail + block)[-2 * TAIL :]
        yield from self._tail(tail, kept)

    def _spans(self, block: bytes, owed: int, head: bool) -> tuple[list[tuple[int, int]], int]:
        """-> byte spans of `block` to keep, each of whole lines, in order; and how many lines the last one lacks."""
        spans: list[tuple[int, int]] = []
        short = 0
        if owed:
            end, short = _forward(block, 0, owed)
            spans.append((0, end))
        if head:
            _add(spans, 0, block.rfind(b"\n", 0, HEAD) + 1 or len(block))
        for index, place in self._confirmed(block):
            if spans and place <= spans[-1][1] and index not in self.wide:
                start = spans[-1][0]
            else:
                start = _back(block, place, BEFORE)
            end, lacking = _forward(block, max(place - 1, 0), AFTER_WIDE if index in self.wide else AFTER)
            short = max(short, lacking)
            _add(spans, start, end)
        return spans, short

    def _confirmed(self, block: bytes) -> Iterator[tuple[int, int]]:
        """Yields (pattern, end of the match), at most once for each line and pattern and not too often in all."""
        seen: dict[int, int] = {}
        start, end = 0, -1
        for index, place in self.scanner.ends(block):
            if place > end:  # The ends come in order, so most are on the line of the one before.
                start = block.rfind(b"\n", 0, max(place - 1, 0)) + 1
                end = block.find(b"\n", max(place - 1, 0))
                end = len(block) if end < 0 else end
            if seen.get(index) == start:
                continue
            seen[index] = start
            if index in self.wide and self._repeats(block, start, place):
                continue
            if self._hits[index] >= MOST_HITS or self._misses[index] >= MOST_MISSES:
                self.skimmed += 1
            elif self.confirms(index, block[start : min(end, start + LONGEST_LOOK)]):
                self._hits[index] += 1
                yield index, place
            else:
                self._misses[index] += 1

    def _repeats(self, block: bytes, start: int, place: int) -> bool:
        """-> whether the same text, but for the label before it (its rank), opened here often enough before.

        512 ranks print one traceback 512 times. Its last line has a hit of its own, so the rank is still heard.
        """
        label = block[start : block.find(b"Traceback", start, place)]
        if not label or len(label) > _LONGEST_LABEL or b"Traceback" in label:
            return False
        body = hash(block[place : place + _BODY].replace(label, b""))
        self._bodies[body] += 1
        return self._bodies[body] > _SAME

    def _tail(self, tail: bytes, kept: int) -> Iterator[tuple[int, bytes]]:
        start = 0 if len(tail) <= TAIL else tail.find(b"\n", len(tail) - TAIL) + 1
        part = tail[start:]
        first = self.lines - part.count(b"\n") - (not part.endswith(b"\n")) + 1
        for number, line in _cut(part, [(0, len(part))], first):
            if number > kept:
                yield number, line


def _add(spans: list[tuple[int, int]], start: int, end: int) -> None:
    """Adds a span that begins at or after the last one's start; spans that touch become one."""
    if spans and start <= spans[-1][1]:
        spans[-1] = (min(start, spans[-1][0]), max(end, spans[-1][1]))
    else:
        spans.append((start, end))


def _back(block: bytes, place: int, lines: int) -> int:
    """-> the start of the line that stands `lines` above the one that holds the byte before `place`."""
    start = max(place - 1, 0)
    for _ in range(lines + 1):
        start = block.rfind(b"\n", 0, start)
        if start < 0:
            return 0
    return start + 1


def _forward(block: bytes, place: int, lines: int) -> tuple[int, int]:
    """-> the end of the line that stands `lines` below the one at `place`; and how many of them the block lacks."""
    end = place
    for done in range(lines + 1):
        end = block.find(b"\n", end) + 1
        if not end:
            return len(block), lines + 1 - done
    return end, 0


def _cut(block: bytes, spans: list[tuple[int, int]], first: int) -> Iterator[tuple[int, bytes]]:
    """Yields the lines of the spans with their numbers; `first` is the number of the block's first line."""
    number, counted = first, 0
    for start, end in spans:
        number += block.count(b"\n", counted, start)
        for line in block[start:end].split(b"\n")[: None if end == len(block) and block[-1:] != b"\n" else -1]:
            yield number, line
            number += 1
        counted = end
