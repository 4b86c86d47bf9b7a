"""Reads one run: every kept line goes through the extractors once, and findings remain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import dropwhile, islice
from typing import Any

from app.domain.entry import Kind
from app.domain.event import Event
from app.domain.line import Line
from app.parsing.collectives import Collectives
from app.parsing.device import Device
from app.parsing.elastic import Elastic
from app.parsing.environment import Environment
from app.parsing.environment.told import start
from app.parsing.processes import Processes
from app.parsing.scheduler import Scheduler
from app.parsing.tracebacks import LeftOut, Tracebacks
from app.triage.belonging import is_of_training
from app.triage.cascade import unexplained
from app.triage.folding import Finding, Findings
from app.triage.glance import NOTHING, Seen
from app.triage.last_words import LastWords
from app.triage.match import Matcher
from app.triage.second_look import LONGEST, alarming, passages, second_look
from app.triage.survival import ends_badly
from app.triage.titles import HEAD, title

_ENDING_TYPES = ("ChildFailedError", "SignalException", "ProcessRaisedException", "ProcessExitedException")
_CAUSELESS = frozenset({"slurm", "line", "cut traceback", "launcher"})
_OF_AGENTS = frozenset({"elastic agent", "elastic first", "elastic report"})
_ELASTIC = 1  # the bit of the first extractor
_REREAD = frozenset({"line", "cut traceback"})


@dataclass(slots=True)
class RunReading:
    """What was read of one run so far. Feed the lines in order, many at once, then `close`."""

    matcher: Matcher
    left_out: LeftOut = field(default_factory=LeftOut)  # of all runs that the files hold
    findings: Findings = field(init=False)
    _by_bits: dict[int, list[tuple[int, Any]]] = field(default_factory=dict)  # extractors, in their order
    environment: Environment = field(default_factory=Environment)
    elastic: Elastic = field(default_factory=Elastic)
    tracebacks: Tracebacks = field(init=False)
    collectives: Collectives = field(default_factory=Collectives)
    device: Device = field(default_factory=Device)
    processes: Processes = field(default_factory=Processes)
    scheduler: Scheduler = field(default_factory=Scheduler)
    last_words: LastWords = field(default_factory=LastWords)
    ranks: set[int] = field(default_factory=set)  # that lines name as their own
    head: list[Line] = field(default_factory=list)  # the first lines, from the first one that has text
    last_order: int = 0
    ended: bool = False
    warnings: list[str] = field(default_factory=list)
    paste: list[Line] | None = field(default_factory=list)  # all lines, as long as they are few
    _claimed: set[int] = field(default_factory=set)  # orders of those that an extractor read
    _above: str = ""  # the text of the last line
    _waiting: dict[str, int] = field(default_factory=dict)  # streams in which extractors have begun to read: their bits

    def __post_init__(self) -> None:
        self.findings = Findings(self.matcher)
        self.tracebacks = Tracebacks(self.left_out)

    def feed(self, lines: Sequence[Line]) -> None:
        """Most lines show nothing: they are kept for what may need them later, and go no further."""
        if not lines:
            return
        self._keep(lines)
        self.tracebacks.meet(lines)
        starts = {start(line) for line in lines if line.raw is not line.text}
        texts = (line.text for line in lines)
        seen = self.matcher.glance([*texts, *starts], self.environment.settled)
        for told in starts & seen.keys():
            self.environment.label(seen[told].facts)
        read: list[tuple[Line, bool]] = []
        above = self._above
        for line in lines:
            shown = seen.get(line.text)
            if line.stream in self._waiting or (shown is not None and (shown.begins or shown.pointed)):
                read.append(self._read(line, shown or NOTHING, above))
            else:
                if self.elastic.attempt or line.host is not None:
                    line = self._placed(line)
                if shown is not None:
                    self.environment.note(line, shown.facts, False)  # Most lines of most logs count steps, no more.
                read.append((line, False))
            above = line.text
        self._above = above
        self.environment.feed(lines)
        self.last_words.feed(read)
        self.ended = self.ended or bool(self.environment.well)

    def _keep(self, lines: Sequence[Line]) -> None:
        if len(self.head) < HEAD:
            told = lines if self.head else dropwhile(lambda line: not line.text.strip("\0 \t"), lines)
            self.head += islice(told, HEAD - len(self.head))
        self.last_order = lines[-1].order
        self.ranks.update(line.rank for line in lines if line.rank is not None)
        if self.paste is not None:
            self.paste += lines
            if len(self.paste) > LONGEST:
                self.paste = None

    def _read(self, line: Line, seen: Seen, above: str) -> tuple[Line, bool]:
        """-> the line with its attempt, and whether an extractor or an entry reads it. `above`: the text of the line
        before it."""
        wanted = seen.begins | self._waiting.get(line.stream, 0)
        if not wanted & _ELASTIC:
            line = self._placed(line)
        known, events = False, list[Event]()
        if wanted:
            self.tracebacks.above = above
            line, known, events = self._extract(line, wanted)
        if seen.facts:
            self.environment.note(line, seen.facts, known)
        if seen.pointed and not known and self.matcher.line(line.text, seen.pointed):
            known = True
            self.findings.add([replace(Event.at(line, line.text, "line"), fatal=False)])
        if events:
            self.findings.add(events)
            self.ended = self.ended or any(map(_ends_run, events))
        return line, known

    def _placed(self, line: Line) -> Line:
        """-> the line with its attempt."""
        line = self.elastic.placed(line)
        if line.host is not None:
            self.environment.at(line.host, line.rank)
        return line

    def _extract(self, line: Line, wanted: int) -> tuple[Line, bool, list[Event]]:
        """-> the line with its attempt, whether an extractor claims it, and the events that it tells; `wanted` has the
        bits of the extractors that it is for."""
        claimed, waits, events = False, 0, list[Event]()
        for bit, extractor in self._chosen(wanted):
            # What is part of a report is none of a traceback.
            claimed = (claimed and extractor is self.tracebacks) or extractor.feed(line) or claimed
            waits |= bit if extractor.waits(line.stream) else 0
            if extractor.events:
                events += extractor.events
                extractor.events.clear()
            if extractor is self.elastic:
                line = self._placed(line)
        if waits:
            self._waiting[line.stream] = waits
        elif line.stream in self._waiting:
            del self._waiting[line.stream]
        if claimed and self.paste is not None:
            self._claimed.add(line.order)
        return line, claimed, events

    def _chosen(self, wanted: int) -> list[tuple[int, Any]]:
        """-> the extractors with these bits, in their order."""
        chosen = self._by_bits.get(wanted)
        if chosen is None:
            every = (self.elastic, self.tracebacks, self.device, self.collectives, self.processes, self.scheduler)
            bits = ((1 << at, extractor) for at, extractor in enumerate(every))
            chosen = self._by_bits[wanted] = [(bit, extractor) for bit, extractor in bits if wanted & bit]
        return chosen

    def close(self) -> None:
        """Ends what is still open."""
        for extractor in (self.elastic, self.tracebacks, self.processes, self.collectives):
            extractor.close()
        self.findings.add(self._events())
        if any(found.event.line.node is not None for found in self.findings if found.event.source in _OF_AGENTS):
            self.findings.give_nodes_back()
        told = title(self.head, pasted=self.paste is not None)
        below = (found.event for found in self.findings if told is None or found.event.line != told.line)
        silent = all(map(_tells_no_cause, below))
        if told is not None and silent:
            self.findings.leave_out(told.line)
            self.findings.add([told])
            return
        if self.paste and silent and not self.environment.well:
            self._look_again(self.paste)
        if silent:
            self._hear_last_words()
        if self.is_quiet():
            self.findings.add(self.last_words.standing_still(self.environment))

    def _hear_last_words(self) -> None:
        """Takes errors that no entry knows from the end of a run of which a launcher at most says that it failed."""
        found = self.findings.matched(self.is_of_training())
        weak = bool(self.environment.progress)  # Then no warning explains the run.
        named = [finding for finding in unexplained(found) if finding.match and not (weak and finding.match.weak)]
        if all(map(_tells_of_a_child, named)):
            self.findings.add(self.last_words.events(self.environment, any(map(ends_badly, found))))

    def _look_again(self, paste: list[Line]) -> None:
        """Reads a short paste again, all but what launchers said; of a run that trained only what stands behind."""
        progress = self.environment.progress
        since = progress[-1] if progress else -1
        launchers = (finding.event for finding in self.findings if finding.event.source not in _REREAD)
        known = {line.order for event in launchers for line in event.lines}
        known |= self._claimed if known else set()  # A launcher's traceback quotes its own code.
        rest = [line for line in paste if line.order > since and line.order not in known]
        self.findings.add(event for event in second_look(rest) if self.matcher.names(event))
        if not progress and not self.environment.foreign and not self.findings.matched():
            near = [event for event in passages(paste) if self.matcher.nearly(event)]
            self.findings.add(near or alarming(paste))

    def is_blank(self) -> bool:
        """-> whether not a single line with text was read."""
        return not self.head

    def is_empty(self) -> bool:
        """-> whether nothing was read but a launcher's banner."""
        return not self.environment.progress and not self.environment.well and self.is_quiet()

    def is_quiet(self) -> bool:
        """-> whether nothing was found."""
        return not any(True for _ in self.findings)

    def is_of_training(self) -> bool:
        """-> whether the log is one of a training run, or a paste that may well be."""
        return is_of_training(self.environment, self.paste, self._claimed)

    def _events(self) -> list[Event]:
        """-> the events that the extractors told since they were asked last."""
        events: list[Event] = []
        for extractor in (self.elastic, self.tracebacks, self.device, self.collectives, self.processes, self.scheduler):
            if extractor.events:
                events += extractor.events
                extractor.events.clear()
        return events


def _tells_no_cause(event: Event) -> bool:
    """-> whether an event tells only that something ended, as launchers and schedulers do."""
    return event.source in _CAUSELESS or event.source.startswith("elastic")


def _tells_of_a_child(finding: Finding) -> bool:
    """-> whether a launcher says no more than that a worker of its failed."""
    match = finding.match
    echo = match is not None and match.entry.kind is Kind.CONSEQUENCE and match.entry.area == "elastic"
    return echo and finding.event.source not in _REREAD


def _ends_run(event: Event) -> bool:
    if event.exception is not None:
        return event.exception.type.endswith(_ENDING_TYPES) or event.source == "launcher"
    return event.source in ("elastic first", "slurm")
