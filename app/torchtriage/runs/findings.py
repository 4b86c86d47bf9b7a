"""Merges equal events of many ranks into one finding, so that memory use depends on the number of failures and not of
lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from torchtriage.domain.entry import Role
from torchtriage.domain.event import Event, EventSource, Where
from torchtriage.domain.line import START, Position
from torchtriage.matching.masking import mask
from torchtriage.matching.matcher import EventPatterns, Match, Matcher

MAX_FINDINGS = 4000  # different findings kept of a run: the first half of them are the earliest, the others the newest
MAX_NEAR_SEARCHES = 100  # findings without an entry that are compared with all entries' messages, for each run
# Sources that report a failure of another process, or one that no entry names.
_APART = frozenset({EventSource.LAUNCHER, EventSource.TITLE, EventSource.ALARMING_LINE})
BATCH_AREA = "slurm"  # the area of entries about what a batch system did with its own job
MAX_SAMPLES = 7  # equal events of other ranks, kept as evidence


class FirstSeen(NamedTuple):
    """Where a rank first showed a finding: the position in the run, and the line number, file and time as the log gives
    them."""

    position: Position
    number: int
    file: str | None
    time: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """An event, with all ranks and hosts that showed an equal one. `local_ranks` are from lines that name no rank.

    `samples` are equal events of a few other ranks, used as evidence. `matches`, `around`, `wraps_another` and
    `ends_itself` are not set until the whole run was read.
    """

    found: EventPatterns
    attempt: int = 0
    fatal: bool = False  # at least one of the equal events ended its process, as far as the log shows
    samples: tuple[Event, ...] = ()
    ranks: frozenset[int] = frozenset()
    local_ranks: frozenset[int] = frozenset()
    places: Mapping[int, FirstSeen] = field(default_factory=dict)  # for each rank
    hosts: tuple[str, ...] = ()
    count: int = 0
    last: Position = START
    matches: tuple[Match, ...] = ()
    around: tuple[str | None, str | None] = None, None  # the nearest times above and below, if it has none
    wraps_another: bool = False  # an exception that names only the type of another one, which failed
    ends_itself: bool = False  # a program says that it kills its own processes now

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

    def has_role(self, role: Role) -> bool:
        """Returns whether the finding's entry has the role."""
        return bool(self.matches) and role in self.matches[0].entry.roles


@dataclass(slots=True)
class _MergedEvents:
    """A finding to which events are still added."""

    found: EventPatterns
    attempt: int
    fatal: bool = False
    samples: list[Event] = field(default_factory=list)
    ranks: set[int] = field(default_factory=set)
    local_ranks: set[int] = field(default_factory=set)
    places: dict[int, FirstSeen] = field(default_factory=dict)
    hosts: dict[str, None] = field(default_factory=dict)
    count: int = 0
    last: Position = START

    @classmethod
    def of(cls, finding: Finding) -> _MergedEvents:
        """Returns a copy of a finding to which more events can be added."""
        return cls(
            finding.found, finding.attempt, finding.fatal, list(finding.samples), set(finding.ranks),
            set(finding.local_ranks), dict(finding.places), dict.fromkeys(finding.hosts), finding.count, finding.last,
        )  # fmt: skip

    def add(self, event: Event, matcher: Matcher) -> None:
        first = self.found.event
        if self.count and event.line.position < first.line.position:
            # A stream that was closed later began earlier.
            self.samples = [first, *self.samples][:MAX_SAMPLES]
            self.found = matcher.patterns_of(event)
        elif self.count and len(self.samples) < MAX_SAMPLES and event.rank not in self.ranks:
            self.samples.append(event)
        first = self.found.event
        if self.count and _frames(first) < _frames(event):
            # One rank printed only the message, or lines of other ranks interrupted its traceback; this rank's is
            # complete.
            self.found = matcher.patterns_of(_with_frames_of(first, event))
        self.count += 1
        self.fatal = self.fatal or event.fatal
        self.last = max(self.last, event.line.position)
        if event.rank is not None:
            self.ranks.add(event.rank)
            known, line = self.places.get(event.rank), event.line
            if known is None or line.position < known.position:
                self.places[event.rank] = FirstSeen(line.position, line.number, line.file, event.time)
            elif known.time is None and event.time is not None:
                self.places[event.rank] = known._replace(time=event.time)  # The copy in error.json has a time.
        elif event.local_rank is not None:
            self.local_ranks.add(event.local_rank)
        if event.host is not None:
            self.hosts.setdefault(event.host)

    def finding(self) -> Finding:
        return Finding(
            self.found, self.attempt, self.fatal, tuple(self.samples), frozenset(self.ranks),
            frozenset(self.local_ranks), dict(self.places), tuple(self.hosts), self.count, self.last,
        )  # fmt: skip


class Findings:
    """Collects events as they are found. `found` returns them as findings."""

    def __init__(self, matcher: Matcher, known: Iterable[Finding] = ()) -> None:
        """`known` are earlier findings, to which the events are added."""
        self._matcher = matcher
        self._first: dict[tuple[object, ...], _MergedEvents] = {_key(one.event): _MergedEvents.of(one) for one in known}
        self._newest: dict[tuple[object, ...], _MergedEvents] = {}
        self.dropped = 0

    def __bool__(self) -> bool:
        return bool(self._first)

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            key = _key(event)
            fold = self._first.get(key) or self._newest.get(key)
            if fold is None:
                fold = self._keep(key, _MergedEvents(self._matcher.patterns_of(event), event.attempt))
            fold.add(event, self._matcher)

    def _keep(self, key: tuple[object, ...], fold: _MergedEvents) -> _MergedEvents:
        """Keeps a finding. If there are too many, one from the middle of the log is dropped, because the first failure
        and the end of a run matter most."""
        if len(self._first) < MAX_FINDINGS // 2:
            self._first[key] = fold
            return fold
        if len(self._newest) >= MAX_FINDINGS // 2:
            del self._newest[next(iter(self._newest))]
            self.dropped += 1
        self._newest[key] = fold
        return fold

    def found(self) -> tuple[Finding, ...]:
        """Returns the findings in the order in which they were found."""
        return tuple(fold.finding() for fold in chain(self._first.values(), self._newest.values()))


def _key(event: Event) -> tuple[object, ...]:
    """Returns the key that equal events have in common."""
    text = event.chain[0].text + event.text if event.chain else event.text
    # An exit status belongs to one rank; exceptions and lines can be the same on several ranks.
    who = (event.source, event.rank, event.local_rank, event.host) if event.where is Where.EXIT else ()
    return (event.where, event.attempt, event.source if event.source in _APART else "", mask(text[:400]), *who)


def _frames(event: Event) -> frozenset[tuple[str, int]]:
    """Returns the file and line of each frame of the traceback."""
    raised = event.exception
    return frozenset((frame.file, frame.line) for frame in raised.frames) if raised is not None else frozenset()


def _with_frames_of(event: Event, equal: Event) -> Event:
    """Returns the event with the traceback of an equal one. Its message keeps its own position."""
    *before, last = equal.chain
    if event.exception is not None:
        last = replace(last, lines=event.exception.lines)
    return replace(event, source=equal.source, chain=(*before, last))


def with_matches(
    findings: Iterable[Finding], matcher: Matcher, of_training: bool = True, of_another: bool = False
) -> tuple[Finding, ...]:
    """Returns the findings with the entries that they match.

    If the log is not `of_training`, entries whose messages any program may print are left out. What a batch system says
    about its own job still counts, unless the log shows that it is `of_another` field.
    """
    findings = tuple(findings)
    everywhere = {index for finding in findings for index, _, _ in finding.found.hits}
    near_searches = 0
    matched: list[Finding] = []
    for finding in findings:
        matches = matcher.matches(finding.found, everywhere)
        if (
            not any(map(_matches_exactly, matches))
            and finding.event.where is Where.EXCEPTION
            and near_searches < MAX_NEAR_SEARCHES
        ):
            near_searches += 1
            near = matcher.near_match(finding.event)
            weak = {match.entry.id for match in matches if match.weak}
            # If a sign is marked as weak, its entry stays weak, however similar the message is to another one.
            if near is not None and near.entry.id not in weak:
                matches = [near, *matches]
        if not of_training:
            counted = () if of_another else _areas_of_its_job(finding.event, matcher)
            matches = [match for match in matches if not match.general or match.entry.area in counted]
        raised = finding.event.exception
        wraps = raised is not None and matcher.carriers.search(raised.text) is not None
        ends = matcher.ends_itself.search(finding.event.text) is not None
        matched.append(replace(finding, matches=tuple(matches), wraps_another=wraps, ends_itself=ends))
    return tuple(matched)


def _matches_exactly(match: Match) -> bool:
    """Returns whether a sign matches this exact message. For a catch-all entry, its broadest sign does not count."""
    return not match.weak and (not match.broad or (match.sign is not None and not match.sign.broad))


def failing_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Returns the findings that report a failure, in the order of the log. A line that matches no entry reports
    none."""
    failed = (finding for finding in findings if finding.matches or _reports_failure(finding.event))
    return sorted(failed, key=lambda finding: finding.position)


def without_node_ranks(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Returns the findings without ranks that were in fact node numbers, because each task of the outer launcher was an
    agent. If the local rank is known too, the rank was computed from both and stays."""
    return tuple(map(_without_node_rank, findings))


def _without_node_rank(finding: Finding) -> Finding:
    line, rank = finding.event.line, finding.event.rank
    of_node = line.node is not None and line.local_rank is None
    if not of_node or rank != line.node or finding.event.where is Where.EXIT:
        return finding
    found = replace(finding.found, event=replace(finding.event, rank=None))
    return replace(finding, found=found, ranks=frozenset(), places={})


def _reports_failure(event: Event) -> bool:
    """Returns whether an event that matches no entry still reports a failure."""
    return event.where is not Where.LINE or event.source in (
        EventSource.SLURM,
        EventSource.PROCESS_EXIT,
        EventSource.ALARMING_LINE,
        EventSource.TRAILING_ERROR,
    )


def _areas_of_its_job(event: Event, matcher: Matcher) -> frozenset[str]:
    """Returns the areas of entries about the job itself, if a batch system or launcher reports on its own job."""
    areas = matcher.own_jobs.areas(event.line.text)
    return areas | {BATCH_AREA} if event.source is EventSource.SLURM else areas
