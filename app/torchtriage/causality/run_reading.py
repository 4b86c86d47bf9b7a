"""What was read of one run: the frozen result of the streaming steps, from which the cause is worked out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from torchtriage.causality.error_lines import ErrorLines
from torchtriage.causality.findings import Finding, Findings, that_failed, with_matches
from torchtriage.causality.lines_above import Above
from torchtriage.domain.event import Event
from torchtriage.domain.evidence import NO_EVIDENCE, Evidence
from torchtriage.domain.line import Line, Position
from torchtriage.domain.verdict import ClockOffset
from torchtriage.facts import Environment
from torchtriage.facts.log_classifier import is_of_training
from torchtriage.matching.matcher import Matcher
from torchtriage.parsing.run_extractors import RunExtractors
from torchtriage.reading.file_types import FileForm


@dataclass(frozen=True, slots=True)
class Reading:
    """One run of a log. `paste` holds all its lines where they are few, `head` the first ones, `file_ends` the last
    ones of each file, each with whether an extractor or an entry has read it. `opening` holds the first ones that no
    extractor read, `above` those above each failure. `evidence`: what dumps and stacks show. `beside`: what tools
    report of hosts, GPUs and the job; `forms` are those of their files, by their numbers in positions. `reports_alone`:
    the same where there is no log. `clock_offsets`: of hosts whose clocks are wrong. `errors`: lines that speak of an
    error and that nobody read."""

    matcher: Matcher
    findings: tuple[Finding, ...]
    environment: Environment
    extractors: RunExtractors
    ranks: frozenset[int]  # that lines name as their own
    head: tuple[Line, ...]
    paste: tuple[Line, ...] | None
    claimed: frozenset[Position]  # of the lines of a short paste that an extractor read
    file_ends: tuple[tuple[tuple[Line, bool], ...], ...]
    last_position: Position
    dropped: int  # different findings that were too many to keep
    warnings: tuple[str, ...] = ()
    opening: tuple[Line, ...] = ()
    above: Above = field(default_factory=dict)
    evidence: Evidence = NO_EVIDENCE
    beside: tuple[Finding, ...] = ()
    forms: Mapping[int, FileForm] = field(default_factory=dict)
    reports_alone: frozenset[FileForm] = frozenset()
    clock_offsets: tuple[ClockOffset, ...] = ()
    errors: ErrorLines = field(default_factory=ErrorLines)

    def with_events(self, events: Iterable[Event], instead_of: Line | None = None) -> Reading:
        """-> the reading with further events; what the line `instead_of` said goes."""
        events = tuple(events)
        if not events:
            return self
        kept = (finding for finding in self.findings if instead_of is None or finding.event.line != instead_of)
        findings = Findings(self.matcher, kept)
        findings.add(events)
        return replace(self, findings=findings.found(), dropped=self.dropped + findings.dropped)

    def matched(self) -> Reading:
        """-> the reading with the entries that its findings show, of those that count in a log of its field."""
        findings = with_matches(self.findings, self.matcher, self.is_of_training, self.environment.foreign > 0)
        return replace(self, findings=findings, beside=with_matches(self.beside, self.matcher))

    def failures(self) -> list[Finding]:
        """-> the findings that say that something failed, with their entries, in the order of the log."""
        return that_failed(self.matched().findings)

    def events_beside(self, event: Event | None) -> Iterable[Event]:
        """Yields the events of other lines than the given one's."""
        lines: Sequence[Line] | None = event.lines if event is not None else None
        return (finding.event for finding in self.findings if finding.event.lines != lines)

    @property
    def is_of_training(self) -> bool:
        """Whether the log is one of a training run, or a paste that may well be."""
        return is_of_training(self.environment, self.paste, self.claimed)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was read but a launcher's banner."""
        return not self.environment.progress and not self.environment.well and not self.findings
