"""Runs the extractors on the lines of one run. Each line goes to the extractors that need it; they return events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, TypeVar, cast

from torchtriage.domain.event import Event
from torchtriage.domain.line import Line
from torchtriage.parsing.collectives import Collectives
from torchtriage.parsing.extractor import Extractor, SharedState
from torchtriage.parsing.nccl import Nccl
from torchtriage.parsing.process_exits import ProcessExits
from torchtriage.parsing.registry import EXTRACTORS, Kinds
from torchtriage.parsing.slurm import Slurm
from torchtriage.parsing.torchelastic import TorchElastic
from torchtriage.parsing.tracebacks import Tracebacks

E = TypeVar("E", bound=Extractor)


class ReadLine(NamedTuple):
    """A line that was read: the line with its attempt, whether an extractor claims it, and the events that it
    completes."""

    line: Line
    claimed: bool
    events: list[Event]


@dataclass(slots=True)
class RunExtractors:
    """The extractors of one run.

    A set of extractors is written as bits, in the order of `kinds`. `open` are the streams with unfinished text, each
    with the bits of the extractors that read it. The extractors with a name of their own keep more than events, for
    later steps.
    """

    shared: SharedState = field(default_factory=SharedState)
    kinds: Kinds = EXTRACTORS
    open: dict[str, int] = field(default_factory=dict)
    elastic: TorchElastic = field(init=False)
    tracebacks: Tracebacks = field(init=False)
    collectives: Collectives = field(init=False)
    nccl: Nccl = field(init=False)
    processes: ProcessExits = field(init=False)
    slurm: Slurm = field(init=False)
    _of_elastic: int = field(init=False)  # its bit
    _all: list[tuple[int, Extractor]] = field(init=False)
    _by_bits: dict[int, list[tuple[int, Extractor]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._all = [(1 << number, kind.for_run(self.shared)) for number, kind in enumerate(self.kinds)]
        self._of_elastic = 1 << self.kinds.index(TorchElastic)
        self.elastic, self.tracebacks = self._of(TorchElastic), self._of(Tracebacks)
        self.collectives, self.nccl = self._of(Collectives), self._of(Nccl)
        self.processes, self.slurm = self._of(ProcessExits), self._of(Slurm)

    def expect(self, lines: Sequence[Line]) -> None:
        """Takes the next kept lines of a file, before any of them is fed."""
        for _, extractor in self._all:
            extractor.expect(lines)

    def wanted(self, line: Line, begins: int) -> int:
        """Returns the bits of the extractors that need a line. Those in `begins` may begin to read here."""
        return begins | self.open.get(line.stream, 0)

    def with_attempt(self, line: Line) -> Line:
        """Returns the line with its attempt."""
        return self.elastic.with_attempt(line)

    def feed(self, line: Line, above: str, wanted: int) -> ReadLine:
        """Gives a line to the extractors with the `wanted` bits. `above` is the text of the kept line above it."""
        claimed, still_open = False, 0
        events: list[Event] = []  # `list[Event]()` takes ten times as long, for each kept line
        if not wanted & self._of_elastic:
            line = self.with_attempt(line)
        for bit, extractor in self._chosen(wanted):
            if not (claimed and extractor.skips_claimed):
                found, claims = extractor.feed(line, above)
                claimed = claims or claimed
                if found:
                    events += found
            if extractor.continues(line.stream):
                still_open |= bit
            if extractor is self.elastic:
                line = self.with_attempt(line)
        if still_open:
            self.open[line.stream] = still_open
        elif line.stream in self.open:
            del self.open[line.stream]
        return ReadLine(line, claimed, events)

    def read_ahead(self, lines: Sequence[Line], begins: Iterable[int], at: int) -> int:
        """Returns how many lines, beginning with index `at`, one extractor read at once. This needs an extractor with
        unfinished text in their stream and many lines that no other extractor needs. `begins` has the bits of each line
        from there on."""
        stream = lines[at].stream
        bits = self.open.get(stream, 0)
        chosen = self._chosen(bits) if bits else []
        if len(chosen) != 1 or self.elastic.attempt:
            return 0
        return chosen[0][1].read_ahead(stream, _of_one_writer(lines, begins, at, bits))

    def close(self) -> Iterator[Event]:
        """Closes what is unfinished, and yields the events that this completes."""
        for _, extractor in self._all:
            yield from extractor.close()

    def _of(self, kind: type[E]) -> E:
        return cast(E, self._all[self.kinds.index(kind)][1])

    def _chosen(self, wanted: int) -> list[tuple[int, Extractor]]:
        """Returns the extractors with these bits, in their order."""
        chosen = self._by_bits.get(wanted)
        if chosen is None:
            chosen = self._by_bits[wanted] = [(bit, extractor) for bit, extractor in self._all if wanted & bit]
        return chosen


def _of_one_writer(lines: Sequence[Line], begins: Iterable[int], at: int, bits: int) -> Iterator[Line]:
    """Yields the lines, beginning with index `at`, that the same writer continues and no other extractor needs."""
    stream = lines[at].stream
    for line, wanted in zip(islice(lines, at, None), begins, strict=False):
        if line.stream != stream or line.host is not None or wanted & ~bits:
            return
        yield line
