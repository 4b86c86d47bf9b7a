"""Finds which ranks failed, waited, never arrived or were stopped, in which collectives they waited, and the time
between failures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.domain.entry import Role
from torchtriage.domain.event import EventSource, Where
from torchtriage.domain.fact import Fact
from torchtriage.domain.rank_set import RankSet
from torchtriage.domain.verdict import RankMark
from torchtriage.reading.prefixes.times import seconds_between

_REPORTED = (EventSource.FIRST_FAILURE, EventSource.OTHER_FAILURE)
_AT_ONCE = 1  # seconds; the launcher's report gives whole ones
_MISSED = frozenset({"missing", "few", "behind"})  # reasons that name the ranks that the others waited for


def waiting_ranks(failure: Failure) -> Iterator[Fact]:
    """Yields `failed_ranks`, `waiting_ranks`, `missing_ranks` and `stopped_ranks`. If ranks waited in different
    collectives, it yields `behind_ranks`, `behind_call` and `behind_sequence`, `ahead_ranks` with the same details, and
    `sequence_gap`. `spread` is the time between the first and the last rank that failed; `same_second` is given instead
    if there is none."""
    yield from _ranks(failure)
    yield from _lagging_ranks(failure)
    yield from _spread(failure)


def _ranks(failure: Failure) -> Iterator[Fact]:
    missing = _missing(failure)
    # The rank that first reports a missing rank is one of the ranks that waited.
    waited = missing is not None and any(map(failure.finding.has_role, (Role.TIMEOUT, Role.PEER_LOSS)))
    kinds = (
        ("failed_ranks", {"failed"} if waited else {"failed", "first"}),
        ("waiting_ranks", {"waited", "first"} if waited else {"waited"}),
        ("stopped_ranks", {"stopped"}),
    )
    gone = _absent_ranks(failure, missing)
    for name, wanted in kinds:
        marks = [mark for mark in failure.marks if mark.kind in wanted]
        if name == "waiting_ranks":
            marks = [mark for mark in marks if not gone.issuperset(mark.ranks)]
        if marks:
            yield _of_marks(failure, name, marks, gone if name == "waiting_ranks" else frozenset())
    if missing is not None:
        yield missing


def _absent_ranks(failure: Failure, missing: Fact | None) -> frozenset[int]:
    """Returns the ranks that never arrived. A message that they printed at their end is not a wait. Ranks that are
    behind do wait, but in an earlier collective."""
    if missing is None or any(reason.name == "behind" for reason in failure.root.because):
        return frozenset()
    return frozenset(RankSet.from_json(str(missing.value)))


def _lagging_ranks(failure: Failure) -> Iterator[Fact]:
    """Yields which ranks waited in an earlier collective than the others, and the collectives of both groups."""
    reading = failure.reading
    collectives = reading.extractors.collectives
    suspects = collectives.suspects(reading.facts.world_size)
    if suspects is None or suspects.why != "behind":
        return
    if suspects.sequence is not None and suspects.others is not None:
        yield failure.fact("sequence_gap", suspects.others - suspects.sequence)
    for side, sequence in (("behind", suspects.sequence), ("ahead", suspects.others)):
        waits = [wait for wait in collectives.waits() if wait.sequence == sequence]
        if waits and sequence is not None:
            line, calls = waits[0].line, {wait.operation for wait in waits}
            yield failure.fact(f"{side}_ranks", str(RankSet.of(wait.rank for wait in waits)), line=line)
            yield failure.fact(f"{side}_sequence", sequence, line=line)
            if len(calls) == 1 and (call := calls.pop()) is not None:
                yield failure.fact(f"{side}_call", call, line=line)


def _missing(failure: Failure) -> Fact | None:
    missed = next((reason for reason in failure.root.because if reason.name in _MISSED), None)
    if missed is not None and missed.values.get("ranks") is not None:
        return replace(failure.fact("missing_ranks", str(missed.values["ranks"])), rank=None)
    missing = [mark for mark in failure.marks if mark.kind == "missing"]
    return _of_marks(failure, "missing_ranks", missing) if missing else None


def _of_marks(failure: Failure, name: str, marks: Iterable[RankMark], without: frozenset[int] = frozenset()) -> Fact:
    marks = list(marks)
    ranks = RankSet.of(rank for mark in marks for rank in mark.ranks if rank not in without)
    return Fact(name, str(ranks), None, marks[0].line, marks[0].file, None, failure.root.attempt or None)


def _spread(failure: Failure) -> Iterator[Fact]:
    """Yields the seconds between the first and the last rank that failed on its own, if the clocks of their hosts can
    be compared."""
    if failure.reading.clock_offsets:
        return
    span, places = failure.reading.facts.span, failure.finding.places.values()
    dated = [span.dated(place.time) for place in places]
    others = [mark for mark in failure.marks if mark.kind == "failed"]
    dated += [time for mark in others for time in (mark.time, mark.until)]
    times = sorted(filter(None, dated))
    seconds = seconds_between(times[0], times[-1]) if len(times) > 1 else None
    if seconds is None:
        return
    yield failure.fact("spread", round(seconds, 3), "s")
    if seconds < 1:
        count = len(failure.finding.ranks | {rank for mark in others for rank in mark.ranks})
        yield failure.fact("same_second", count, "ranks")


def failing_rank(failure: Failure) -> Iterator[Fact]:
    """Yields `rank`, `local_rank`, `host` and `time`. If several ranks show the same failure, it also yields `ranks`
    and `rank_count`, or `exited_ranks` and `exited_code` if only the launcher's report names the ranks."""
    root = failure.root
    for name, value in (("rank", root.rank), ("local_rank", root.local_rank), ("host", root.host), ("time", root.time)):
        if value is not None:
            yield failure.fact(name, value)
    on_one_host = root.rank is not None and root.rank == root.local_rank  # then local ranks equal global ranks
    same = failure.finding.ranks or (failure.finding.local_ranks if on_one_host else frozenset())
    if len(same) > 1:
        yield failure.fact("ranks", str(RankSet.of(same)))
        yield failure.fact("rank_count", len(same), "ranks")
    elif failure.finding.event.rank is None:
        yield from _exited_alike(failure)


def _exited_alike(failure: Failure) -> Iterator[Fact]:
    """Yields the ranks that the launcher reports with the same exit code within a second, and that code. It yields
    nothing if they may have failed in different ways: at a signal, or if the log shows another failure as well."""
    of_attempt = [one for one in failure.reading.findings if one.attempt == failure.finding.attempt]
    others = (one for one in of_attempt if not one.has_role(Role.LAUNCHER_ECHO) and one.event.where is not Where.EXIT)
    if any(one.entry != failure.finding.entry for one in others):
        return
    exits = [one.event for one in of_attempt if one.event.source in _REPORTED]
    first = next((event for event in exits if event.source is EventSource.FIRST_FAILURE), None)
    if first is None or not first.exit_code or first.exit_code < 0 or first.time is None:
        return
    same = [event for event in exits if event.exit_code == first.exit_code and _is_at_once(first.time, event.time)]
    ranks = frozenset(event.rank for event in same if event.rank is not None)
    if len(ranks) > 1:
        yield failure.fact("exited_ranks", str(RankSet.of(ranks)), line=first.line)
        yield failure.fact("exited_code", first.exit_code, line=first.line)


def _is_at_once(first: str, other: str | None) -> bool:
    seconds = seconds_between(first, other) if other else None
    return seconds is not None and abs(seconds) <= _AT_ONCE
