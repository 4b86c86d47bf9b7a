"""Reads one run: every kept line goes through the extractors once, and findings remain."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from app.domain.entry import Kind
from app.domain.event import Event
from app.domain.line import Line
from app.parsing.collectives import Collectives
from app.parsing.device import Device
from app.parsing.elastic import Elastic
from app.parsing.environment import Environment
from app.parsing.processes import Processes
from app.parsing.scheduler import Scheduler
from app.parsing.tracebacks import Tracebacks
from app.triage.cascade import unexplained
from app.triage.folding import Finding, Findings
from app.triage.last_words import LastWords
from app.triage.match import Matcher
from app.triage.second_look import LONGEST, alarming, passages, second_look
from app.triage.survival import ends_badly

_ENDING_TYPES = ("ChildFailedError", "SignalException", "ProcessRaisedException", "ProcessExitedException")
_CAUSELESS = frozenset({"slurm", "line", "cut traceback", "launcher"})
_UNTOLD = 7  # lines with words; of so few, none need say that they are of training,
_HINTED = 40  # and of so few one is enough;
_PLAIN = 3  # so many are enough for any log
_WORDS = re.compile(r"[^\W\d_]{3}")
_REREAD = frozenset({"line", "cut traceback"})


@dataclass(slots=True)
class RunReading:
    """What was read of one run so far. Feed the lines in order, many at once, then `close`."""

    matcher: Matcher
    findings: Findings = field(init=False)
    environment: Environment = field(default_factory=Environment)
    elastic: Elastic = field(default_factory=Elastic)
    tracebacks: Tracebacks = field(default_factory=Tracebacks)
    collectives: Collectives = field(default_factory=Collectives)
    device: Device = field(default_factory=Device)
    processes: Processes = field(default_factory=Processes)
    scheduler: Scheduler = field(default_factory=Scheduler)
    last_words: LastWords = field(default_factory=LastWords)
    ranks: set[int] = field(default_factory=set)  # that lines name as their own
    first_line: Line | None = None
    last_order: int = 0
    ended: bool = False
    warnings: list[str] = field(default_factory=list)
    paste: list[Line] | None = field(default_factory=list)  # all lines, as long as they are few
    _claimed: set[int] = field(default_factory=set)  # orders of those that an extractor read

    def __post_init__(self) -> None:
        self.findings = Findings(self.matcher)

    def feed(self, lines: Sequence[Line]) -> None:
        """Each step goes over all lines before the next one does, so that its code stays in the processor's cache."""
        read = [self._extract(line) for line in lines]
        for line, claimed, _ in read:
            self.environment.feed(line, claimed)
        for line, claimed, events in read:
            shows = not claimed and bool(line.text) and self.matcher.line(line.text)
            if shows:
                self.findings.add([replace(Event.at(line, line.text, "line"), fatal=False)])
            self.last_words.feed(line, claimed or shows)
            if events:
                self.findings.add(events)
                self.ended = self.ended or any(map(_ends_run, events))
        self.ended = self.ended or bool(self.environment.well)

    def _extract(self, line: Line) -> tuple[Line, bool, list[Event]]:
        """-> the line with its attempt, whether an extractor claims it, and the events that it tells."""
        if self.first_line is None and line.text.strip("\0 \t"):
            self.first_line = line
        self.last_order = line.order
        if line.rank is not None:
            self.ranks.add(line.rank)
        if self.paste is not None:
            self.paste.append(line)
            if len(self.paste) > LONGEST:
                self.paste = None
        claimed = self.elastic.feed(line)
        line = self.elastic.placed(line)
        claimed = claimed or self.tracebacks.feed(line)
        for extractor in (self.device, self.processes, self.collectives, self.scheduler):
            claimed = extractor.feed(line) or claimed
        if claimed and self.paste is not None:
            self._claimed.add(line.order)
        return line, claimed, self._events()

    def close(self) -> None:
        """Ends what is still open."""
        for extractor in (self.elastic, self.tracebacks, self.processes, self.collectives):
            extractor.close()
        self.findings.add(self._events())
        silent = all(_tells_no_cause(finding.event) for finding in self.findings)
        if self.paste and silent and not self.environment.well:
            self._look_again(self.paste)
        if silent:
            self._hear_last_words()

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
        return self.first_line is None

    def is_empty(self) -> bool:
        """-> whether nothing was read but a launcher's banner."""
        return not self.environment.progress and not self.environment.well and not any(True for _ in self.findings)

    def is_of_training(self) -> bool:
        """-> whether the log is one of a training run, or so short a paste that it may well be."""
        environment = self.environment
        if environment.foreign or environment.of_field >= _PLAIN:
            return not environment.of_another_program
        lines = sum(bool(_WORDS.search(line.text)) for line in self.paste or ())
        return self.paste is not None and lines <= (_HINTED if environment.of_field else _UNTOLD)

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
