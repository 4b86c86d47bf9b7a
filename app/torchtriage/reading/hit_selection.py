"""Selects which hits of the scan are read: few of many similar lines, but some of every rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.scan import Scanner
from torchtriage.reading.skipped_lines import Who, kept_count
from torchtriage.reading.traceback_dedup import KnownTracebacks

MAX_HITS = 3000  # hits of one pattern in one file, in lines that are not similar
MAX_SIMILAR = 1000  # lines that differ only in numbers; the tail and ranks not read yet are read anyway
# lines that the scan proposes for a pattern that does not match, before the pattern is ignored in this file
MAX_MISSES = 20_000
MAX_MATCHES = 100_000  # matches of one pattern, before it is ignored
MAX_LATEST_MATCHES = 1_000_000  # the same for one in `latest`: 1024 ranks that each report a thousand checkpoints
NO_LIMIT = 1 << 62
# lines that match a pattern in `errors` and are reported; after that, only the last one of each PART
MAX_ERRORS = 20_000
MAX_IGNORED = 1_000_000  # matches; reporting them takes as long as compiling a scanner for the other patterns only
# bytes of a part of a block; for each pattern in `latest`, the last matching line of each part is reported
PART = 64 << 10
MAX_NEWEST = 4096  # matching lines of a block that are checked
BRIEFLY = 50  # similar lines that are read with a full window around them
MAX_SEARCHED_BYTES = 64 << 10  # bytes of a line in which a pattern is searched
_COMPARED = 160  # bytes of two lines that are compared
_MAX_KNOWN = 1 << 16  # kinds of lines, and ranks that wrote them, that are remembered
_DIGITS = b"0123456789"
# Letters of both cases instead of (?i), so that the pattern begins with a literal.
_RANK = lazy_regex(rb"[rR][aA][nN][kK][ =:_]?\d{1,6}\b")
_LABEL = lazy_regex(rb"(?i)\s*\[?(?:default)?\d{1,6}\]?:")


class Hit(NamedTuple):
    """A line to read, from byte `start` to its line feed at `end`. `brief` is true if the lines around similar hits
    were read often enough.

    `wide` is true if a traceback or table begins here. `frames_end` is the end of the frames of a known traceback, else
    0.
    """

    start: int
    end: int
    wide: bool
    brief: bool
    frames_end: int = 0


class Newest(NamedTuple):
    """A line that matches a pattern in `latest`, from byte `start` to its line feed at `end`. `who` is its writer.
    `spread` is true if it is the last such line of its PART."""

    start: int
    end: int
    who: Who
    spread: bool


@dataclass(slots=True)
class HitSelection:
    """Selects the hits of one file, block by block. `skipped` counts the skipped lines. A line that matches only
    patterns in `latest` is not a hit. `newest` has the places of such lines in the block: the last ones of each rank
    and the last one of each PART, in order. `error_lines` has the places of lines that match a pattern in `errors`,
    whatever else they match."""

    scanner: Scanner
    wide: frozenset[int]
    confirms: Callable[[int, bytes], bool]
    latest: frozenset[int] = frozenset()
    errors: frozenset[int] = frozenset()
    skipped: int = 0
    newest: list[Newest] = field(default_factory=list)
    error_lines: list[tuple[int, int]] = field(default_factory=list)
    _errors: int = 0
    _hits: Counter[int] = field(default_factory=Counter)
    _misses: Counter[int] = field(default_factory=Counter)
    _seen: Counter[int] = field(default_factory=Counter)
    _similar: dict[int, tuple[int, int]] = field(default_factory=dict)
    _ranks_read: set[tuple[int, bytes]] = field(default_factory=set)
    _ignored_patterns: set[int] = field(default_factory=set)
    _ignored: int = 0
    _unconfirmed: set[int] = field(default_factory=set)
    _tracebacks: KnownTracebacks = field(default_factory=KnownTracebacks)

    def select(self, block: bytes, kept: int = 0) -> Iterator[Hit]:
        """Yields the lines of `block` to read, in order and each once. The lines before byte `kept` are read anyway
        with their surroundings, so of these only the start of something long is yielded."""
        self.newest, self.error_lines = [], []
        passed = 0  # the frames of a known traceback end here
        for start, end, indexes in self._lines(block, kept):
            if start < passed:
                continue
            line = block[start : min(end, start + MAX_SEARCHED_BYTES)]
            kind = hash(line[:_COMPARED].translate(None, _DIGITS))
            times, index = self._similar.get(kind) or (0, self._first_confirmed(indexes, line))
            if times >= MAX_SIMILAR and not self._new_rank(kind, line):
                self.skipped += 1
            elif index is not None:
                self._remember(kind, times, index, line)
                wide = index in self.wide
                passed = self._tracebacks.end_of_repeated(block, start, end) if wide else 0
                yield Hit(start, end, wide, times >= BRIEFLY, passed)

    def _lines(self, block: bytes, kept: int) -> Iterator[tuple[int, int, list[int]]]:
        """Yields (start, end, patterns) for each line in which the scanner finds patterns, in order of the ends. Before
        byte `kept`, only for patterns that begin something long."""
        start, end = 0, -1
        indexes: list[int] = []
        for index, place in self._scanned(block):
            if place <= kept and index not in self.wide:
                continue
            if place > end:
                if indexes:
                    yield start, end, indexes
                start = block.rfind(b"\n", 0, place - 1) + 1
                end = block.find(b"\n", place - 1)
                end, indexes = len(block) if end < 0 else end, []
            if index not in indexes:
                indexes.append(index)
        if indexes:
            yield start, end, indexes

    def _scanned(self, block: bytes) -> list[tuple[int, int]]:
        found, ignored = self.scanner.ends(block, self._ignored_patterns)
        self.skipped += ignored
        self._ignored += ignored
        if found:
            counts = Counter(map(itemgetter(0), found))
            self._seen.update(counts)
            self._ignored_patterns.update(index for index in counts if self._seen[index] >= self._limit_of(index))
            if not self.latest.isdisjoint(counts):
                self.newest = _newest(block, [hit for hit in found if hit[0] in self.latest])
                found = [hit for hit in found if hit[0] not in self.latest]
            if not self.errors.isdisjoint(counts):
                places = [place for index, place in found if index in self.errors]
                if len(places) > (left := max(MAX_ERRORS - self._errors, 0)):
                    places = [*places[:left], *{place // PART: place for place in places[left:]}.values()]
                self.error_lines = _whole_lines(block, places)
                self._errors += len(self.error_lines)
                found = [hit for hit in found if hit[0] not in self.errors]
        if self._ignored > MAX_IGNORED:
            self.scanner, self._ignored = self.scanner.without(self._ignored_patterns), 0
        return found

    def _limit_of(self, index: int) -> int:
        """Returns the limit on the matches of a pattern."""
        return NO_LIMIT if index in self.errors else MAX_LATEST_MATCHES if index in self.latest else MAX_MATCHES

    def _first_confirmed(self, indexes: list[int], line: bytes) -> int | None:
        """Returns the first pattern that really matches the line and is below its limit. Patterns that begin something
        long come first."""
        same = hash(line)
        if same in self._unconfirmed:
            return None
        over = False
        for index in (*(index for index in indexes if index in self.wide), *indexes):
            if self._hits[index] >= MAX_HITS or self._misses[index] >= MAX_MISSES:
                over = True
            elif self.confirms(index, line):
                self._hits[index] += 1
                return index
            else:
                self._misses[index] += 1
        self.skipped += over
        if len(self._unconfirmed) < _MAX_KNOWN:
            self._unconfirmed.add(same)
        return None

    def _new_rank(self, kind: int, line: bytes) -> bool:
        rank = rank_spelled(line)
        return rank is not None and len(self._ranks_read) < _MAX_KNOWN and (kind, rank) not in self._ranks_read

    def _remember(self, kind: int, times: int, index: int, line: bytes) -> None:
        if times or len(self._similar) < _MAX_KNOWN:
            self._similar[kind] = times + 1, index
        if len(self._ranks_read) < _MAX_KNOWN and (rank := rank_spelled(line)):
            self._ranks_read.add((kind, rank))


def _newest(block: bytes, found: list[tuple[int, int]]) -> list[Newest]:
    """Returns, from lines with these matches (sorted by their ends), the last ones of each rank and the last one of
    each PART, in order."""
    newest: list[Newest] = []
    often: Counter[Who] = Counter()
    parts: set[tuple[int, int]] = set()
    start, looked = len(block) + 1, 0
    for index, place in reversed(found):
        if place > start:
            continue  # another match in the line below
        end = block.find(b"\n", place - 1)
        start, end = block.rfind(b"\n", 0, place - 1) + 1, len(block) if end < 0 else end
        who = rank_spelled(block[start : min(end, start + _COMPARED)]), index
        spread = (place // PART, index) not in parts
        if spread or often[who] < kept_count(who, len(often)):
            newest.append(Newest(start, end, who, spread))
        often[who] += 1
        parts.add((place // PART, index))
        looked += 1
        if looked == MAX_NEWEST:
            break
    return newest[::-1]


def _whole_lines(block: bytes, places: list[int]) -> list[tuple[int, int]]:
    """Returns start and line feed of each line with a match that ends at one of `places`, which are sorted."""
    spans: list[tuple[int, int]] = []
    end = -1
    for place in places:
        if place > end:
            end = block.find(b"\n", place - 1)
            end = len(block) if end < 0 else end
            spans.append((block.rfind(b"\n", 0, place - 1) + 1, end))
    return spans


def rank_spelled(line: bytes) -> bytes | None:
    """Returns the rank at the beginning of a line, as printed there, or None."""
    found = _LABEL.match(line, 0, _COMPARED) or _RANK.search(line, 0, _COMPARED)
    return found[0] if found else None
