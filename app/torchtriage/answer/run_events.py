"""Collects what a run shows besides its steps, for its timeline: events, which ranks ran on which host, and how far
each rank came. All results are limited, however many ranks and failures there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from heapq import nsmallest
from itertools import chain, islice
from typing import NamedTuple

from torchtriage.answer.verdict_run import failure_time
from torchtriage.causality.root_cause import Choice, from_kernel
from torchtriage.domain.entry import Role
from torchtriage.domain.event import Event, EventSource, Where
from torchtriage.domain.host import host_name
from torchtriage.domain.line import Line, Position
from torchtriage.domain.rank_set import RankSet
from torchtriage.domain.verdict import LastProgress, RunEvent
from torchtriage.facts import progress
from torchtriage.matching.masking import mask_all
from torchtriage.runs.error_lines import ErrorForm
from torchtriage.runs.findings import Finding, failing_findings
from torchtriage.runs.run_reading import Reading

MAX_EVENTS = 32  # events
MAX_STEPS = 16  # groups of ranks that reached the same step
MAX_HOSTS = 256
_MAX_LENGTH = 160  # characters of a line
_MAX_UNKNOWN = 8
_MAX_COMPARED = 4096  # lines of findings that unread error lines are compared with
_WATCHED = frozenset({EventSource.COLLECTIVE, EventSource.COLLECTIVE_MISMATCH, EventSource.HANG})
_LAUNCHED = frozenset(
    {EventSource.LAUNCHER, EventSource.ELASTIC_AGENT, EventSource.FIRST_FAILURE, EventSource.OTHER_FAILURE}
)
_WHOLE_JOB = (Role.WHOLE_JOB, Role.CANCELLED, Role.REJECTED, Role.NOT_STARTED)
# What is kept longest if there are too many events.
_STANDINGS = ("cause", "unknown", "consequence", "survived")
_KINDS = ("kernel", "scheduler", "program", "watchdog", "launcher", "exit")


class _Key(NamedTuple):
    standing: str
    kind: str
    entry: str | None
    attempt: int
    host: str | None
    finding: int | None


def run_events(
    choice: Choice, reading: Reading, shown: Callable[[str], str], ended_well: bool = False
) -> tuple[RunEvent, ...]:
    """Returns what went wrong and what was warned of, in the order of the log, including the first failure. It also
    returns error lines that no sign matches, unless the run `ended_well`. `shown` is applied to a line before it is
    cut."""
    survived = {id(finding) for finding in choice.survived}
    alike: dict[_Key, list[Finding]] = defaultdict(list)
    for finding in sorted((*choice.live, *choice.survived), key=lambda finding: finding.position):
        alike[_key(finding, _standing(finding, choice, survived))].append(finding)
    kept = nsmallest(MAX_EVENTS, alike.items(), key=_weight)
    known = [(part[0].position, _run_event(part, key.standing, key.kind, reading, shown)) for key, part in kept]
    room = min(MAX_EVENTS - len(known), _MAX_UNKNOWN)
    unread = nsmallest(room, () if ended_well else _unread(reading), key=lambda form: _distance(form, choice))
    known += [(form.first.position, _unknown(form, reading, shown)) for form in unread]
    return tuple(event for _, event in sorted(known, key=lambda one: one[0]))


def last_progress(reading: Reading) -> tuple[LastProgress, ...]:
    """Returns how far each rank came, those with the least progress first. The result is empty if lines name no rank.
    Use it only for a log that was read in full, because otherwise a rank's later lines may be missing."""
    by_step: dict[int | None, list[tuple[int, Line]]] = defaultdict(list)
    for rank, line in reading.facts.last_progress_lines.items():
        by_step[progress.step(progress.newest(line.text))].append((rank, line))
    groups = sorted(by_step.items(), key=lambda group: (group[0] is None, group[0] or 0))
    if len(groups) > MAX_STEPS:
        most = [one for _, group in groups[MAX_STEPS - 1 :] for one in group]
        groups = [*groups[: MAX_STEPS - 1], (groups[-1][0], most)]
    return tuple(_last(step, group, reading) for step, group in groups)


def host_ranks(reading: Reading) -> dict[str, RankSet]:
    """Returns the ranks on each host, as far as log lines show them. If there are more than MAX_HOSTS hosts, those
    with failures and the first ones are returned. The result is empty if the numbers belong to nodes."""
    on: dict[str, set[int]] = defaultdict(set)
    for rank, host in reading.facts.host_of.items():
        if _host(host):
            on[host].add(rank)
    troubled: dict[str, None] = {}
    for finding in failing_findings(reading.findings):
        for event in (finding.event, *finding.samples):
            named = _host(event.host)
            if named and event.rank is not None and event.rank not in reading.facts.host_of:
                on[named].add(event.rank)
            if named:
                troubled.setdefault(named)
    ranks = max(len(reading.ranks), reading.facts.world_size or 0)
    if all(len(known) == 1 for known in on.values()) and ranks > len(on):
        return {}
    kept = islice(dict.fromkeys(chain((host for host in troubled if host in on), on)), MAX_HOSTS)
    return {host: RankSet.of(on[host]) for host in sorted(kept, key=lambda host: min(on[host]))}


def _key(finding: Finding, standing: str) -> _Key:
    """Returns the key that findings of the same event share. Findings of one entry on several ranks are one event.
    Findings without an entry are one event each."""
    kind = _kind(finding.event, finding)
    host = _host(finding.event.host) if kind in ("kernel", "scheduler") else None
    alone = standing == "cause" or (finding.entry is None and kind != "exit")
    return _Key(standing, kind, finding.entry, finding.attempt, host, id(finding) if alone else None)


def _host(name: str | None) -> str | None:
    """Returns the host if its name distinguishes it from other hosts, or else None."""
    known = host_name(name)
    return known if known != "localhost" else None


def _weight(alike: tuple[_Key, list[Finding]]) -> tuple[int, int, Position]:
    """Returns the sort key of an event. The lowest keys are kept."""
    key, findings = alike
    return _STANDINGS.index(key.standing), _KINDS.index(key.kind), findings[0].position


def _standing(finding: Finding, choice: Choice, survived: set[int]) -> str:
    if finding is choice.root:
        return "cause"
    weak = finding.match is not None and finding.match.weak
    before = choice.root is None or finding.position < choice.root.position
    if id(finding) in survived or (weak and before):
        return "survived"
    unread = finding.match is None and finding.event.where in (Where.EXCEPTION, Where.LINE)
    return "unknown" if unread and finding.event.source not in _LAUNCHED else "consequence"


def _kind(event: Event, finding: Finding | None = None) -> str:
    """Returns who reports the event, judged by the form of the line and the role of the matched entry."""
    if from_kernel(event.line) or (event.source is EventSource.DEVICE_ERROR and event.text.startswith("NVRM: ")):
        return "kernel"
    if event.source is EventSource.SLURM:
        return "scheduler"
    if event.source in _WATCHED:
        return "watchdog"
    if event.source in _LAUNCHED or (finding and finding.has_role(Role.LAUNCHER_ECHO)):
        return "launcher"
    if finding and any(map(finding.has_role, _WHOLE_JOB)):
        return "scheduler"
    return "exit" if event.where is Where.EXIT else "program"


def _run_event(
    findings: list[Finding], standing: str, kind: str, reading: Reading, shown: Callable[[str], str]
) -> RunEvent:
    first, dated = findings[0], reading.facts.span.dated
    line, time = first.event.line, dated(failure_time(first) or first.around[0] or first.around[1])
    ranks, hosts, times = set[int](), set[str | None](), set[str | None]()
    for one in findings:
        ranks |= one.ranks or {rank for rank in (one.event.rank,) if rank is not None}
        hosts |= {_host(name) for name in (one.event.host, *one.hosts)}
        times |= {dated(place.time) for place in one.places.values()} | {dated(one.event.time)}
    last = max(filter(None, times), default=time)
    named = hosts - {None}
    return RunEvent(
        kind=kind,
        standing=standing,
        line=line.number,
        text=shown(line.raw.strip())[:_MAX_LENGTH],
        file=line.file,
        time=time,
        until=last if last != time else None,
        ranks=RankSet.of(ranks),
        host=named.pop() if len(named) == 1 else None,
        entry=first.entry,
        attempt=first.attempt,
        count=sum(max(one.count, 1) for one in findings),
    )


def _unread(reading: Reading) -> list[ErrorForm]:
    """Returns error lines that no extractor read and that none of the findings contains."""
    forms = reading.errors.forms(reading.matcher.ending_regexes, reading.matcher.document_regexes)
    if not forms:
        return []
    lines = [
        line for finding in reading.findings for event in (finding.event, *finding.samples) for line in event.lines
    ]
    places, reported = {line.position for line in lines}, {mask_all(line.text) for line in lines[:_MAX_COMPARED]}
    return [form for text, form in forms.items() if text not in reported and places.isdisjoint(form.places)]


def _distance(form: ErrorForm, choice: Choice) -> tuple[float, Position]:
    """Returns the distance from the root cause. Without a root cause, the first lines count as nearest."""
    at = choice.root.position if choice.root else None
    far = 0.0 if at is None else min(abs(place.lines_below(at)) for place in form.places)
    return far, form.first.position


def _unknown(form: ErrorForm, reading: Reading, shown: Callable[[str], str]) -> RunEvent:
    line, dated = form.first, reading.facts.span.dated
    event = Event.at(line, line.text, EventSource.TRAILING_ERROR)
    time, until = dated(line.time), dated(form.last.time)
    return RunEvent(
        _kind(event), "unknown", line.number, shown(line.raw.strip())[:_MAX_LENGTH], line.file, time,
        until=until if until != time else None, ranks=RankSet.of(form.ranks),
        host=_host(line.host) if line.host == form.last.host else None, attempt=line.attempt, count=form.count,
    )  # fmt: skip


def _last(step: int | None, group: list[tuple[int, Line]], reading: Reading) -> LastProgress:
    line = max((line for _, line in group), key=lambda line: line.position)
    ranks = RankSet.of(rank for rank, _ in group)
    return LastProgress(ranks, step, line.number, line.file, reading.facts.span.dated(line.time))
