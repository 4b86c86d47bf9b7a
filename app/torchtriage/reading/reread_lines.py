"""Reads some lines of a run again after its verdict named them. Returns their original texts.

Bytes between them are only searched for line ends, so a log of 100 MB takes 0.1 s.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from torchtriage.domain.line import Line, Position
from torchtriage.errors import UnreadableLog
from torchtriage.reading.blocks import blocks
from torchtriage.reading.lines import lines
from torchtriage.reading.prefixes.paths import FileOrigin, FileOrigins
from torchtriage.reading.sources import LogFile, Run
from torchtriage.reading.windows import line_feeds

TAIL = 96 << 10  # bytes at the end of a file
MAX_LENGTH = 4000  # characters of a line


@dataclass(frozen=True, slots=True)
class LineSpan:
    """A range of lines in a file, both ends included. `file` is None if the run is one file."""

    file: str | None
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class WantedLines:
    """The lines to read again: spans, and the ends of files that are named or written by one of `ranks`."""

    spans: tuple[LineSpan, ...] = ()
    tails: frozenset[str | None] = frozenset()
    ranks: frozenset[int] = frozenset()

    def tail_of(self, origin: FileOrigin) -> bool:
        return origin.file in self.tails or (origin.rank is not None and origin.rank in self.ranks)


@dataclass(slots=True)
class SeenAgain:
    """`lines` maps (file, number) to the original line, with its record and prefixes. `tails` are the last lines of
    files, with the values of their prefixes."""

    lines: dict[tuple[str | None, int], str] = field(default_factory=dict)
    tails: dict[str | None, list[Line]] = field(default_factory=dict)


def reread(run: Run, wanted: WantedLines) -> SeenAgain:
    """Returns the wanted lines that exist. `run` must be readable a second time. Files that cannot be read are left
    out."""
    seen = SeenAgain()
    origins = FileOrigins(run.names)
    for file in run.files():
        several = run.several or file.member
        origin = origins.of(file.name, several)
        spans = joined(span for span in wanted.spans if span.file == origin.file)
        tail = wanted.tail_of(origin)
        if not (spans or tail):
            if file.member:
                deque(file.chunks(), maxlen=0)  # in an archive, each file must be read before the next
            continue
        try:
            _look(file, origin, spans, tail, seen)
        except UnreadableLog:
            continue  # the verdict already says so
    return seen


def tail_lines(first: int, content: bytes, origin: FileOrigin) -> list[Line]:
    """Returns the whole lines at the end of a file. The first has the number `first`."""
    return [line for many in lines([(first, content)], origin, Position(1, 0)) for line in many]


def joined(spans: Iterable[LineSpan]) -> list[LineSpan]:
    """Returns the spans of one file in order. Adjacent spans become one."""
    found: list[LineSpan] = []
    for span in sorted(spans, key=lambda span: span.first):
        if found and span.first <= found[-1].last + 1:
            found[-1] = LineSpan(span.file, found[-1].first, max(found[-1].last, span.last))
        else:
            found.append(span)
    return found


def _look(file: LogFile, origin: FileOrigin, spans: Sequence[LineSpan], tail: bool, seen: SeenAgain) -> None:
    number, kept = 1, b""
    for block in blocks(file.chunks(), file.name):
        count = line_feeds(block, 0, len(block))
        for line, text in _lines_in(block, number, number + count, spans):
            seen.lines[origin.file, line] = text
        if tail:
            kept = block if len(block) >= TAIL else (kept + block)[-2 * TAIL :]
        elif spans[-1].last < number and not file.member:
            return
        number += count
    if tail and kept:
        start = 0 if len(kept) <= TAIL else kept.find(b"\n", len(kept) - TAIL) + 1
        content = kept[start:]
        first = number - content.count(b"\n")
        seen.tails[origin.file] = tail_lines(first, content, origin)


def _lines_in(block: bytes, first: int, last: int, spans: Sequence[LineSpan]) -> Iterator[tuple[int, str]]:
    """Yields the lines of a block that are in a span. `first` and `last` are the numbers of the block's lines."""
    inside = [span for span in spans if span.first <= last and span.last >= first]
    if not inside:
        return
    starts = [span.first for span in inside]
    for number, line in enumerate(block.split(b"\n"), first):
        at = bisect_right(starts, number) - 1
        if at >= 0 and number <= inside[at].last and not (number == last and not line):
            yield number, line[: 4 * MAX_LENGTH].decode("utf-8", "replace").removesuffix("\r")[:MAX_LENGTH]
