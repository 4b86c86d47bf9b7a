"""Keeps the lines around hits, and the head and tail of a file. Other lines are not copied.

Consecutive lines are passed on together, as bytes. Working on many at once costs almost nothing per line.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.hit_selection import HitSelection, Newest, rank_spelled
from torchtriage.reading.record_lines import MAX_TEXT_LENGTH
from torchtriage.reading.scan import Scanner
from torchtriage.reading.skipped_lines import CountedLines, NewestLines, NumberedPiece, last_line

BEFORE = 8  # lines kept before a hit
BEFORE_WIDE = 40  # lines kept before the head of a traceback, where the program shows what it works on
AFTER = 12  # lines kept after a hit
AFTER_BRIEF = 4  # lines kept after one of many similar lines, for the rest of its message
AFTER_WIDE = 160  # lines kept after the head of a traceback or table, whose body has no hits
SAMPLE = 400  # bytes of a sample
SAMPLE_EVERY = 64  # a sample is taken whenever the file has grown by a 64th, but more often in its first megabytes
SAMPLE_ALL = 16 << 20  # bytes at the start with more samples
SAMPLE_STEP = 256 << 10  # distance in bytes between those samples
HEAD = 64 << 10  # bytes at the start of a file that are always kept
TAIL = 128 << 10  # bytes at the end of a file that are always kept
# files of a run that keep this much; the n-th keeps a share of WHOLE / n, because thousands have similar content
WHOLE = 16
MAX_DIVISOR = 64  # every file keeps at least HEAD and TAIL divided by this
PIECE = 64 << 10  # bytes that are passed on together; a longer line is passed on alone
MAX_ERROR_LENGTH = 4096  # bytes of an error line that is not kept
_STAMPED = 160  # bytes of a line that contain its time
_CLOCK = lazy_regex(rb"\d\d:\d\d:\d\d")
_LINE = 100  # typical bytes of a line
_LINE_FEEDS = b"\n" * (2 << 20)
_HALF_OF_MAX_LENGTH = MAX_TEXT_LENGTH // 2


@dataclass(slots=True)
class Windows:
    """`read` yields pieces of the file in order, as (number of the first line from 1, whole lines as bytes). A jump in
    the numbers is a gap.

    `wide` are the scanner's patterns that begin something long. `confirms` returns whether a pattern that the scanner
    found really matches the line. `sampled` collects some bytes of blocks that are not kept, as (number of the last
    line, bytes), to show the progress of the run; the longer the file, the fewer. Lines that match only a pattern in
    `latest` open no window; `passing` collects the last ones of them, each with the lines shortly before it. Lines that
    match only a pattern in `error_marks` open none either: `errors` collects the numbers of those that are kept, and
    `passing_errors` counts the others. After the iteration, `size` (bytes) and `lines` are the size of the file,
    `skipped` is the number of hits that were skipped because there were too many similar ones, and `long` is the number
    of kept lines that are too long to read completely.
    """

    scanner: Scanner
    wide: frozenset[int]
    confirms: Callable[[int, bytes], bool]
    number: int = 1  # index of the file in its run
    latest: frozenset[int] = frozenset()
    error_marks: frozenset[int] = frozenset()
    size: int = 0
    lines: int = 0
    long: int = 0
    sampled: list[tuple[int, bytes]] = field(default_factory=list)
    passing: NewestLines = field(default_factory=NewestLines)
    errors: list[int] = field(default_factory=list)
    passing_errors: CountedLines = field(default_factory=CountedLines)
    _open_errors: deque[tuple[int, NumberedPiece, bytes]] = field(
        default_factory=deque
    )  # error lines that may be in the tail, by their bytes
    _sampled_at: int = 0
    _kept: int = 0  # number of the last line that was yielded
    _hits: HitSelection = field(init=False)
    _head: int = field(init=False)  # bytes of the head that are kept
    _tail: int = field(init=False)

    def __post_init__(self) -> None:
        self._hits = HitSelection(self.scanner, self.wide, self.confirms, self.latest, self.error_marks)
        part = min(max(self.number / WHOLE, 1), MAX_DIVISOR)
        self._head, self._tail = int(HEAD / part), int(TAIL / part)

    @property
    def skipped(self) -> int:
        return self._hits.skipped

    def read(self, blocks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
        owed = 0  # lines of the next block that belong to the last window
        tail = b""
        for block in blocks:
            spans, owed = self._spans(block, owed, self.size < self._head)
            above, counted = self.lines, 0
            for line in _outside(self._hits.newest, spans):
                start = max(_back(block, line.start, BEFORE), 0)
                above += line_feeds(block, counted, start) if start >= counted else -line_feeds(block, start, counted)
                counted = start
                self.passing.add(above + 1, block[start : line.end], line.who, line.spread)
            if self._hits.error_lines:
                self._note_errors(block, spans)
            above = self.lines
            self.lines = yield from self._cut(block, spans, above)
            self.size += len(block)
            if self.size < SAMPLE_ALL or self.size - self._sampled_at > self.size // SAMPLE_EVERY:
                self._sampled_at = self.size
                self.sampled += _samples(block, above) if self.size < SAMPLE_ALL else ()
                self.sampled.append((self.lines, block[-SAMPLE:]))
            tail = block if len(block) >= self._tail else (tail + block)[-2 * self._tail :]
        if self.sampled and self.sampled[-1][0] == self.lines:
            self.sampled.pop()  # the end of the file is kept, so it needs no sample
        start = 0 if len(tail) <= self._tail else tail.find(b"\n", len(tail) - self._tail) + 1
        self._settle_errors(self.size - len(tail) + start)
        self._settle_last_errors()
        if start < len(tail):
            above = self.lines - tail.count(b"\n", start) - (not tail.endswith(b"\n"))
            yield from self._cut(tail[start:], [(0, len(tail) - start)], above)

    def _note_errors(self, block: bytes, spans: list[tuple[int, int]]) -> None:
        """Adds the error lines of a block. `spans` are kept, and perhaps the tail."""
        above, counted = self.lines + 1, 0
        kept = iter([*spans, (1 << 62, 1 << 62)])
        begin, stop = next(kept)
        for start, end in self._hits.error_lines:
            above += line_feeds(block, counted, start)
            counted = start
            while stop < end:
                begin, stop = next(kept)
            if start >= begin:
                self.errors.append(above)
                continue
            line = block[start : min(end, start + MAX_ERROR_LENGTH)]
            piece = above, line
            if not _CLOCK.search(line, 0, _STAMPED):
                first = _back(block, start, BEFORE)
                piece = above - block.count(b"\n", first, start), block[first:start] + line
            self._open_errors.append((self.size + start, piece, line))
        self._settle_errors(self.size + len(block) - self._tail)

    def _settle_errors(self, tail: int) -> None:
        """Counts the error lines before byte `tail`, where the tail begins at the earliest."""
        while self._open_errors and self._open_errors[0][0] < tail:
            _, piece, line = self._open_errors.popleft()
            self.passing_errors.add(piece, line, rank_spelled(line))

    def _settle_last_errors(self) -> None:
        """Counts the error lines of the tail. Those before the last window are not kept."""
        for _, piece, line in self._open_errors:
            if (number := last_line(piece)) > self._kept:
                self.errors.append(number)
            else:
                self.passing_errors.add(piece, line, rank_spelled(line))

    def _spans(self, block: bytes, owed: int, head: bool) -> tuple[list[tuple[int, int]], int]:
        """Returns the byte spans of `block` to keep, each of whole lines and in order, and how many lines the last one
        needs from the next block."""
        spans: list[tuple[int, int]] = []
        known: list[tuple[int, int]] = []
        short = 0
        if owed:
            end, short = _forward(block, 0, owed)
            spans.append((0, end))
        kept = 0
        if head:
            _add(spans, 0, block.rfind(b"\n", 0, self._head) + 1 or len(block))
            kept = _back(block, len(block), AFTER + 1) if len(block) <= self._head else 0
        for hit in self._hits.select(block, kept):
            joined = bool(spans) and hit.end <= spans[-1][1] and not hit.wide
            above = 0 if hit.brief else BEFORE_WIDE if hit.wide else BEFORE
            before = spans[-1][0] if joined else _back(block, hit.start, above)
            last, after = hit.end, AFTER_BRIEF if hit.brief and not hit.wide else AFTER_WIDE if hit.wide else AFTER
            if hit.frames_end:
                known.append((hit.end + 1, hit.frames_end))
                last, after = block.find(b"\n", hit.frames_end), AFTER_BRIEF
            end, lacking = _forward(block, last if last >= 0 else len(block), after, spans[-1][1] if spans else 0)
            short = max(short, lacking)
            _add(spans, before, end)
        return _without(spans, known), short

    def _cut(self, block: bytes, spans: list[tuple[int, int]], above: int) -> Generator[tuple[int, bytes], None, int]:
        """Yields the spans in pieces, without lines that were already yielded. Returns the number of the block's last
        line; `above` is that of the line before the block."""
        counted = 0
        for start, end in spans:
            above += line_feeds(block, counted, start)
            counted = start
            while counted < end:
                cut = _line_end(block, counted, min(counted + PIECE, end))
                piece = block[counted:cut]
                last = above + piece.count(b"\n") + (piece[-1:] != b"\n")
                if last > self._kept:
                    known = max(self._kept - above, 0)
                    fresh = piece.split(b"\n", known)[known] if known else piece
                    self.long += _long_lines(fresh)
                    self._kept = last
                    yield above + known + 1, fresh
                above, counted = last, cut
        unfinished = counted < len(block) and not block.endswith(b"\n")
        return above + line_feeds(block, counted, len(block)) + unfinished


def _line_end(block: bytes, start: int, end: int) -> int:
    """Returns the end of the last line that ends between two bytes, or else of the line that begins at `start`."""
    if end == len(block):
        return end
    return block.rfind(b"\n", start, end) + 1 or block.find(b"\n", end) + 1 or len(block)


def _long_lines(piece: bytes) -> int:
    """Returns how many lines are too long to read completely. Such a line covers a half of that length without a line
    feed. Most pieces have none, and splitting them would take ten times as long."""
    halves = range(0, len(piece) - _HALF_OF_MAX_LENGTH + 1, _HALF_OF_MAX_LENGTH)
    if all(piece.find(b"\n", at, at + _HALF_OF_MAX_LENGTH) >= 0 for at in halves):
        return 0
    return sum(map(MAX_TEXT_LENGTH.__lt__, map(len, piece.split(b"\n"))))


def _samples(block: bytes, above: int) -> Iterator[tuple[int, bytes]]:
    """Yields the samples of a block, except the one at its end, as (number of the last line, bytes)."""
    counted = 0
    for end in range(SAMPLE_STEP, len(block) - SAMPLE_STEP + 1, SAMPLE_STEP):
        cut = block.rfind(b"\n", counted, end) + 1
        if cut:
            above += line_feeds(block, counted, cut)
            counted = cut
            yield above, block[max(cut - SAMPLE, 0) : cut]


def line_feeds(block: bytes, start: int, end: int) -> int:
    """Returns the number of line feeds. Rapidfuzz counts equal bytes with vector instructions, three times as fast as
    bytes.count, which in a healthy log took as long as the scan."""
    if not 4096 < end - start <= len(_LINE_FEEDS):
        return block.count(b"\n", start, end)
    from rapidfuzz.distance import Hamming  # imported here because a short log does not need it

    return int(Hamming.similarity(block[start:end], _LINE_FEEDS))


def _add(spans: list[tuple[int, int]], start: int, end: int) -> None:
    """Adds a span that ends after the start of the last one. Adjacent spans become one."""
    while spans and start <= spans[-1][1]:
        last = spans.pop()
        start, end = min(start, last[0]), max(end, last[1])
    spans.append((start, end))


def _outside(lines: Iterable[Newest], spans: list[tuple[int, int]]) -> Iterator[Newest]:
    """Yields the lines that are in no span. Both are in order."""
    rest = iter([*spans, (1 << 62, 1 << 62)])
    start, end = next(rest)
    for line in lines:
        while end < line.end:
            start, end = next(rest)
        if line.start < start:
            yield line


def _without(spans: list[tuple[int, int]], known: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns the spans without the parts in `known`. Both are in order."""
    left: list[tuple[int, int]] = []
    pieces = iter([*known, (1 << 62, 1 << 62)])
    begin, end = next(pieces)
    for start, stop in spans:
        while end <= start:
            begin, end = next(pieces)
        while begin < stop:
            if start < begin:
                left.append((start, begin))
            start = min(end, stop)
            if end > stop:
                break
            begin, end = next(pieces)
        if start < stop:
            left.append((start, stop))
    return left


def _back(block: bytes, at: int, lines: int) -> int:
    """Returns the start of the line that is `lines` above the one at byte `at`."""
    start = at
    for _ in range(lines):
        start = block.rfind(b"\n", 0, max(start - 1, 0)) + 1
    return start


def _forward(block: bytes, at: int, lines: int, kept: int = 0) -> tuple[int, int]:
    """Returns the end of the line that is `lines` below the one at byte `at`, or of the block if all of it is `kept`,
    and the number of these lines that are not in the block."""
    if kept == len(block):
        near = block.count(b"\n", at, at + _LINE * (lines + 1))  # usually so many lines are right below
        return kept, 0 if near > lines else max(lines + 1 - block.count(b"\n", at), 0)
    end = at
    for done in range(lines + 1):
        end = block.find(b"\n", end) + 1
        if not end:
            return len(block), lines + 1 - done
    return end, 0
