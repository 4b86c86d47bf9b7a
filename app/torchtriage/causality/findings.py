"""Folds the equal events of many ranks into one finding, so that memory holds failures and not lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from torchtriage.domain.event import Event, EventSource, Where
from torchtriage.domain.line import START, Line, Position
from torchtriage.matching.masking import mask
from torchtriage.matching.matcher import EventPatterns, Match, Matcher

MOST = 4000  # different findings kept of one run: the first half of them, and the newest
MOST_NEAR_LOOKS = 100  # findings of one run that no entry knows and that are compared with the messages of all
# Sources that speak of others' failures, or of what nobody names.
_APART = frozenset({EventSource.LAUNCHER, EventSource.TITLE, EventSource.ALARMING_LINE})
# What LSF, in its report, and PBS say of the job that they ended.
_OTHER_BATCH = re.compile(r"^\W{0,4}TERM_[A-Z_]{3,30}: [a-z]|=>> PBS: job killed: ")
_SAMPLES = 7  # equal events of other ranks kept for evidence


class Place(NamedTuple):
    """Where one rank showed a finding first: its position in the run, and line, file and time as the log has them."""

    position: Position
    number: int
    file: str | None
    time: str | None


@dataclass(slots=True, eq=False)
class Finding:
    """One event with all ranks and hosts that showed an equal one; `matches` is filled when the run was read.

    `samples` are the equal events of a few other ranks, for evidence.
    """

    found: EventPatterns
    attempt: int = 0
    fatal: bool = False  # one of the equal events at least ended its process, as far as the text tells
    samples: list[Event] = field(default_factory=list)
    ranks: set[int] = field(default_factory=set)
    places: dict[int, Place] = field(default_factory=dict)  # of each rank
    hosts: dict[str, None] = field(default_factory=dict)
    count: int = 0
    last: Position = START
    matches: list[Match] = field(default_factory=list)
    around: tuple[str | None, str | None] = None, None  # times that lines above and below tell, if it tells none

    @property
    def event(self) -> Event:
        return self.found.event

    @property
    def position(self) -> Position:
        return self.event.line.position

    @property
    def match(self) -> Match | None:
        return self.matches[0] if self.matches else None

    @property
    def entry(self) -> str | None:
        return self.matches[0].entry.id if self.matches else None


class Findings:
    """Collects events as they are found."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._first: dict[tuple[object, ...], Finding] = {}
        self._newest: dict[tuple[object, ...], Finding] = {}
        self.dropped = 0

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            self._add(event)

    def _add(self, event: Event) -> None:
        text = event.chain[0].text + event.text if event.chain else event.text
        # Exit statuses are facts about single ranks; exceptions and lines are equal over ranks.
        who = (event.source, event.rank, event.local_rank, event.host) if event.where is Where.EXIT else ()
        key = (event.where, event.attempt, event.source if event.source in _APART else "", mask(text[:400]), *who)
        finding = self._first.get(key) or self._newest.get(key)
        if finding is None:
            finding = self._keep(key, Finding(self._matcher.patterns_of(event), event.attempt))
        elif event.line.position < finding.position:
            # A stream that was closed later had begun earlier.
            finding.samples = [finding.event, *finding.samples][:_SAMPLES]
            finding.found = self._matcher.patterns_of(event)
        elif len(finding.samples) < _SAMPLES and event.rank not in finding.ranks:
            finding.samples.append(event)
        finding.count += 1
        finding.fatal = finding.fatal or event.fatal
        finding.last = max(finding.last, event.line.position)
        if event.rank is not None:
            finding.ranks.add(event.rank)
            known, line = finding.places.get(event.rank), event.line
            if known is None or line.position < known.position:
                finding.places[event.rank] = Place(line.position, line.number, line.file, event.time)
            elif known.time is None and event.time is not None:
                finding.places[event.rank] = known._replace(time=event.time)  # Its copy in error.json is dated.
        if event.host is not None:
            finding.hosts.setdefault(event.host)

    def _keep(self, key: tuple[object, ...], finding: Finding) -> Finding:
        """Keeps a finding; where there are too many, one from the middle of the log goes: a run's first failure and
        what stands at its end are worth the most."""
        if len(self._first) < MOST // 2:
            self._first[key] = finding
            return finding
        if len(self._newest) >= MOST // 2:
            del self._newest[next(iter(self._newest))]
            self.dropped += 1
        self._newest[key] = finding
        return finding

    def matched(self, of_training: bool = True, of_another: bool = False) -> list[Finding]:
        """-> all findings in the order of the log, with their entries; a line that shows none is left out.

        Where the log is not `of_training`, entries whose messages any program prints are left out too; what a batch
        system says of its own job counts unless the log shows that it is `of_another` field.
        """
        everywhere = {index for finding in self for index, _, _ in finding.found.hits}
        looks = 0
        for finding in self:
            finding.matches = self._matcher.matches(finding.found, everywhere)
            own = any(not (match.broad or match.weak) for match in finding.matches)
            if not own and finding.event.where is Where.EXCEPTION and looks < MOST_NEAR_LOOKS:
                looks += 1
                near = self._matcher.near_match(finding.event)
                weak = {match.entry.id for match in finding.matches if match.weak}
                # What a sign calls weak is so, whatever it is near to.
                if near is not None and near.entry.id not in weak:
                    finding.matches = [near, *finding.matches]
            if not of_training:
                counted = "slurm" if _is_of_the_job(finding.event) and not of_another else None
                finding.matches = [m for m in finding.matches if not m.general or m.entry.area == counted]
        told = (finding for finding in self if finding.matches or _tells(finding.event))
        return sorted(told, key=lambda finding: finding.position)

    def leave_out(self, line: Line) -> None:
        """Takes out what one line told."""
        for kept in (self._first, self._newest):
            for key in [key for key, finding in kept.items() if finding.event.line == line]:
                del kept[key]

    def give_nodes_back(self) -> None:
        """Takes the ranks off that were the numbers of nodes: each task of the outer launcher was an agent. Where the
        local rank is known too, the rank was worked out from both."""
        for finding in self:
            line, rank = finding.event.line, finding.event.rank
            told = line.node is not None and line.local_rank is None
            if told and rank == line.node and finding.event.where is not Where.EXIT:
                finding.found = replace(finding.found, event=replace(finding.event, rank=None))
                finding.ranks.clear()
                finding.places.clear()

    def __iter__(self) -> Iterator[Finding]:
        return chain(self._first.values(), self._newest.values())


def _tells(event: Event) -> bool:
    """-> whether an event that no entry names still says that something failed."""
    return event.where is not Where.LINE or event.source in (
        EventSource.SLURM,
        EventSource.PROCESS_EXIT,
        EventSource.ALARMING_LINE,
        EventSource.TRAILING_ERROR,
    )


def _is_of_the_job(event: Event) -> bool:
    """-> whether a batch system speaks of its own job, whatever program that ran."""
    return event.source is EventSource.SLURM or bool(_OTHER_BATCH.search(event.line.text))
