"""The extractors of one run: which of them read a line, and what they tell of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from torchtriage.domain.event import Event
from torchtriage.domain.line import Line
from torchtriage.facts import Environment
from torchtriage.matching.prefilter import Seen
from torchtriage.parsing.collectives import Collectives
from torchtriage.parsing.device_errors import Device
from torchtriage.parsing.horovod import Horovod
from torchtriage.parsing.nccl import Nccl
from torchtriage.parsing.process_exits import Processes
from torchtriage.parsing.slurm import Scheduler
from torchtriage.parsing.torchelastic import Elastic
from torchtriage.parsing.tracebacks import LeftOut, Tracebacks

_ELASTIC, _TRACEBACKS = 1, 2  # the bits of the first two extractors


@dataclass(slots=True)
class Extractors:
    """Their bits, in a glance's `begins`, follow their order. `waiting`: the streams in which some have begun to read,
    with the bits of these."""

    environment: Environment
    left_out: LeftOut
    elastic: Elastic = field(default_factory=Elastic)
    tracebacks: Tracebacks = field(init=False)
    device: Device = field(default_factory=Device)
    collectives: Collectives = field(default_factory=Collectives)
    nccl: Nccl = field(default_factory=Nccl)
    processes: Processes = field(default_factory=Processes)
    scheduler: Scheduler = field(default_factory=Scheduler)
    horovod: Horovod = field(init=False)
    waiting: dict[str, int] = field(default_factory=dict)
    _by_bits: dict[int, list[tuple[int, Any]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tracebacks = Tracebacks(self.left_out)
        self.horovod = Horovod(self.collectives.missing, self.collectives.timed_out)

    def wanted(self, line: Line, seen: Seen) -> int:
        """-> the bits of the extractors that a line is for."""
        return seen.begins | self.waiting.get(line.stream, 0)

    def placed(self, line: Line) -> Line:
        """-> the line with its attempt."""
        line = self.elastic.placed(line)
        if line.host is not None:
            self.environment.at(line.host, line.rank)
        return line

    def feed(self, line: Line, wanted: int) -> tuple[Line, bool, list[Event]]:
        """-> the line with its attempt, whether an extractor claims it, and the events that it tells; `wanted` has the
        bits of the extractors that it is for."""
        claimed, waits = False, 0
        events: list[Event] = []  # `list[Event]()` takes ten times as long, which each kept line would pay
        if not wanted & _ELASTIC:
            line = self.placed(line)
        for bit, extractor in self._chosen(wanted):
            # What is part of a report is none of a traceback.
            claimed = (claimed and extractor is self.tracebacks) or extractor.feed(line) or claimed
            waits |= bit if extractor.waits(line.stream) else 0
            if extractor.events:
                events += extractor.events
                extractor.events.clear()
            if extractor is self.elastic:
                line = self.placed(line)
        if waits:
            self.waiting[line.stream] = waits
        elif line.stream in self.waiting:
            del self.waiting[line.stream]
        return line, claimed, events

    def frames(self, lines: Sequence[Line], shown: Sequence[Seen], at: int) -> int:
        """-> how many of the lines, from number `at` on, were frames of an open traceback; they are read at once,
        as there are many of them and no other extractor wants them."""
        stream = lines[at].stream
        if self.waiting.get(stream) != _TRACEBACKS or self.elastic.attempt:
            return 0
        return self.tracebacks.go_on(stream, _of_one_writer(lines, shown, at))

    def close(self) -> Iterator[Event]:
        """Ends what is still open, and yields the events that this tells."""
        for extractor in (self.elastic, self.tracebacks, self.processes, self.collectives, self.scheduler):
            extractor.close()
        for extractor in self._every():
            yield from extractor.events

    def _chosen(self, wanted: int) -> list[tuple[int, Any]]:
        """-> the extractors with these bits, in their order."""
        chosen = self._by_bits.get(wanted)
        if chosen is None:
            bits = ((1 << at, extractor) for at, extractor in enumerate(self._every()))
            chosen = self._by_bits[wanted] = [(bit, extractor) for bit, extractor in bits if wanted & bit]
        return chosen

    def _every(self) -> tuple[Any, ...]:
        """-> the extractors, in the order of their bits."""
        return (self.elastic, self.tracebacks, self.device, self.collectives, self.nccl, self.processes,
                self.scheduler, self.horovod)  # fmt: skip


def _of_one_writer(lines: Sequence[Line], shown: Sequence[Seen], at: int) -> Iterator[Line]:
    """Yields the lines, from number `at` on, that its writer goes on with and that are for tracebacks alone."""
    stream = lines[at].stream
    for number in range(at, len(lines)):
        line = lines[number]
        if line.stream != stream or line.host is not None or shown[number].begins & ~_TRACEBACKS:
            return
        yield line
