"""What was read of one run. The cause is worked out from this frozen result of the streaming steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from torchtriage.domain.event import Event
from torchtriage.domain.evidence import NO_EVIDENCE, RunEvidence
from torchtriage.domain.line import Line, Position
from torchtriage.domain.verdict import ClockOffset
from torchtriage.facts import CollectedFacts
from torchtriage.facts.log_classifier import is_training_log
from torchtriage.matching.matcher import Matcher
from torchtriage.parsing.run_extractors import RunExtractors
from torchtriage.reading.file_types import FileForm
from torchtriage.runs.context_lines import Above
from torchtriage.runs.error_lines import ErrorLines
from torchtriage.runs.findings import Finding, Findings, failing_findings, with_matches


@dataclass(frozen=True, slots=True)
class Reading:
    """One run of a log.

    `paste` has all its lines if there are few, `text` all of them up to some thousand, `head` the first lines, and
    `file_ends` the last lines of each file; with each line comes whether an extractor or an entry has read it.
    `opening` has the first lines that no extractor read, `above` the lines above each failure. `evidence` is what dumps
    and stacks show. `report_findings` is what tools report about hosts, GPUs and the job; `forms` are the forms of
    their files, by file number. `reports_alone` are these forms if there is no log. `clock_offsets` are those of hosts
    whose clocks are wrong. `errors` are lines that mention an error and that nothing else read. `quoting` are lines of
    a document that is no log.
    """

    matcher: Matcher
    findings: tuple[Finding, ...]
    facts: CollectedFacts
    extractors: RunExtractors
    ranks: frozenset[int]  # that lines name as their own
    head: tuple[Line, ...]
    paste: tuple[Line, ...] | None
    claimed: frozenset[Position]  # lines of a short paste that an extractor read
    file_ends: tuple[tuple[tuple[Line, bool], ...], ...]
    last_position: Position
    dropped: int  # different findings that were not kept because there were too many
    warnings: tuple[str, ...] = ()
    opening: tuple[Line, ...] = ()
    above: Above = field(default_factory=dict)
    evidence: RunEvidence = NO_EVIDENCE
    report_findings: tuple[Finding, ...] = ()
    forms: Mapping[int, FileForm] = field(default_factory=dict)
    reports_alone: frozenset[FileForm] = frozenset()
    clock_offsets: tuple[ClockOffset, ...] = ()
    errors: ErrorLines = field(default_factory=ErrorLines)
    text: tuple[Line, ...] | None = None
    quoting: frozenset[Position] = frozenset()

    def with_events(self, events: Iterable[Event], instead_of: Line | None = None) -> Reading:
        """Returns the reading with more events. What was read from the line `instead_of` is removed."""
        events = tuple(events)
        if not events:
            return self
        kept = (finding for finding in self.findings if instead_of is None or finding.event.line != instead_of)
        findings = Findings(self.matcher, kept)
        findings.add(events)
        return replace(self, findings=findings.found(), dropped=self.dropped + findings.dropped)

    def matched(self) -> Reading:
        """Returns the reading with the entries that its findings match. Only entries that count in a log of its field
        are used."""
        findings = with_matches(self.findings, self.matcher, self.is_training_log, self.facts.other_program_lines > 0)
        return replace(self, findings=findings, report_findings=with_matches(self.report_findings, self.matcher))

    def failures(self) -> list[Finding]:
        """Returns the findings that report a failure, with their entries, in the order of the log."""
        return failing_findings(self.matched().findings)

    def other_events(self, event: Event | None) -> Iterable[Event]:
        """Yields the events of all lines except those of the given event."""
        lines: Sequence[Line] | None = event.lines if event is not None else None
        return (finding.event for finding in self.findings if finding.event.lines != lines)

    @property
    def is_training_log(self) -> bool:
        """Whether the log is from a training run, or a paste that may be from one."""
        return is_training_log(self.facts, self.paste, self.claimed)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was read except the banner of a launcher."""
        return not self.facts.progress and not self.facts.good_ends and not self.findings
