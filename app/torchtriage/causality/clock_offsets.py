"""Measures how far the clocks of a run's hosts are apart.

All ranks of a synchronous job end a step at the same moment, and all ranks of a group end a collective at the same
moment. If the times that two hosts recorded for these events differ, then their clocks differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from itertools import chain
from statistics import median, median_low
from typing import TypeVar

from torchtriage.causality.thresholds import (
    MAX_DIFFERING_SHARE,
    MIN_COMMON_STEPS,
    MIN_OFFSET,
    MIN_OFFSET_OF_CALLS,
    STEPS_AGREE,
)
from torchtriage.domain.event import Event, EventSource
from torchtriage.domain.evidence import RankTimes, RunEvidence
from torchtriage.domain.verdict import ClockOffset
from torchtriage.facts import CollectedFacts
from torchtriage.facts.host_steps import host_of_line, spans
from torchtriage.reading.prefixes.times import iso_time, moment, seconds_between
from torchtriage.reading.slurm_nodelist import sorted_hosts
from torchtriage.runs.run_reading import Reading

_E = TypeVar("_E")  # an event that two hosts have in common
_T = TypeVar("_T")  # the time at which one of the hosts recorded it
_Span = tuple[str, str]
_Call = tuple[str, int]  # process group, sequence number


def clock_offsets(facts: CollectedFacts, evidence: RunEvidence) -> tuple[ClockOffset, ...]:
    """Returns the hosts whose clocks are wrong. The reference is a host that agrees with most others; of two hosts it
    is the one that is behind. Returns nothing if only one host logged steps or left dumps, or if their times do not
    agree on an offset. Offsets from log lines come first, because a log collector may have added the times with another
    clock."""
    steps = facts.host_steps.times(facts.host_of)
    lines = chain(facts.host_steps.lines, facts.spread.lines, facts.progress_lines)
    if found := _offsets(steps, spans(lines, facts.host_of) if steps else {}, seconds_between):
        return _large_offsets(MIN_OFFSET, found)
    placed = _by_host(evidence.times, facts.host_of)
    known = {host: _span(ranks) for host, ranks in placed.items()}
    for least, kind in ((MIN_OFFSET, _ended), (MIN_OFFSET_OF_CALLS, _called)):
        calls = {host: _first(map(kind, ranks)) for host, ranks in placed.items()}
        if found := _offsets(calls, known, _seconds):
            return _large_offsets(least, found)
    return ()


def ahead(event: Event, reading: Reading) -> float:
    """Returns how many seconds the clock that gave an event its time is ahead, or 0 if this is not known."""
    if not reading.clock_offsets:
        return 0.0
    host = host_of_line(event.line, reading.facts.host_of) or event.host
    return next((offset.seconds for offset in reading.clock_offsets if offset.host == host), 0.0)


def report_time(event: Event, reading: Reading) -> str:
    """Returns a sort key: when the process ended that a report names as its first failure, by the reference clock. Each
    agent's report names one. A process without a time comes last. All other events have the same key."""
    if event.source is not EventSource.FIRST_FAILURE:
        return ""
    if event.time is None:
        return "~"
    seconds = ahead(event, reading)
    if not seconds:
        return event.time
    try:
        return (moment(event.time) - timedelta(seconds=seconds)).isoformat()
    except (ValueError, OverflowError):
        return event.time


def _large_offsets(seconds: float, offsets: Iterable[ClockOffset]) -> tuple[ClockOffset, ...]:
    return tuple(found for found in offsets if abs(found.seconds) >= seconds)


def _ended(rank: RankTimes) -> Mapping[_Call, int]:
    return rank.ended


def _called(rank: RankTimes) -> Mapping[_Call, int]:
    """Returns when a rank started the calls that ended. Some backends do not record when a call ends."""
    return rank.called


def _by_host(times: Iterable[RankTimes], host_of: Mapping[int, str]) -> dict[str, list[RankTimes]]:
    found: dict[str, list[RankTimes]] = {}
    for rank in times:
        if (host := rank.host or host_of.get(rank.rank)) is not None:
            found.setdefault(host, []).append(rank)
    return found


def _first(ranks: Iterable[Mapping[_Call, int]]) -> dict[_Call, int]:
    """Returns the time of each call on the first of a host's ranks that recorded it."""
    found: dict[_Call, int] = {}
    for call, at in chain.from_iterable(rank.items() for rank in ranks):
        found[call] = min(at, found.get(call, at))
    return found


def _span(ranks: Iterable[RankTimes]) -> _Span:
    first, last = zip(*(rank.span for rank in ranks), strict=True)
    return iso_time(min(first) / 1e9), iso_time(max(last) / 1e9)


def _seconds(first: int, last: int) -> float:
    return (last - first) / 1e9


def _offsets(
    times: Mapping[str, Mapping[_E, _T]], known: Mapping[str, _Span], between: Callable[[_T, _T], float | None]
) -> list[ClockOffset]:
    """Returns the clock offset of each host that shares events with another one. `times` are the times of each host's
    events, `known` is the time span in which each host trained."""
    hosts = sorted_hosts(dict.fromkeys(times))
    if len(hosts) < 2:
        return []

    def against(reference: str) -> list[ClockOffset]:
        compared = [(host, _differences(times[host], times[reference], between)) for host in hosts if host != reference]
        comparable = [(host, apart) for host, apart in compared if _overlap(known[host], known[reference])]
        return [found for host, apart in comparable if (found := _offset(host, reference, apart)) is not None]

    first = max(hosts, key=lambda host: len(times[host]))
    offsets = against(first)
    _, reference = median_low([(0.0, first), *((found.seconds, found.host) for found in offsets)])
    return offsets if reference == first else against(reference)


def _differences(
    own: Mapping[_E, _T], others: Mapping[_E, _T], between: Callable[[_T, _T], float | None]
) -> list[float]:
    differences = (between(others[event], own[event]) for event in own.keys() & others.keys())
    return [seconds for seconds in differences if seconds is not None]


def _offset(host: str, reference: str, apart: list[float]) -> ClockOffset | None:
    """Returns how far a host's clock is ahead of the reference, or None if the differences between their common events
    do not agree. `apart` are these differences in seconds."""
    if len(apart) < MIN_COMMON_STEPS:
        return None
    middle = median(apart)
    agreeing = [seconds for seconds in apart if abs(seconds - middle) <= STEPS_AGREE]
    few = len(agreeing) < MIN_COMMON_STEPS
    if few or len(apart) - len(agreeing) > MAX_DIFFERING_SHARE * len(apart):
        return None
    return ClockOffset(host, round(middle, 1), reference, len(agreeing), round(max(agreeing) - min(agreeing), 1))


def _overlap(one: _Span, other: _Span) -> bool:
    """Returns whether two hosts trained at the same time by their own clocks. If they did not, a folder may contain two
    launches, one after the other, whose steps took equally long."""
    gaps = seconds_between(one[0], other[1]), seconds_between(other[0], one[1])
    return all(seconds is not None and seconds >= 0 for seconds in gaps)
