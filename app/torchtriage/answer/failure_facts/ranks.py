"""Which ranks failed, waited, never came or were stopped, in which collectives they waited, and how far apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.domain.entry import Role
from torchtriage.domain.fact import Fact
from torchtriage.domain.rank_set import RankSet
from torchtriage.domain.verdict import RankMark
from torchtriage.reading.prefixes.times import seconds_between

_MISSED = frozenset({"missing", "few", "behind"})  # reasons that name ranks that the others waited for


def waiting_ranks(failure: Failure) -> Iterator[Fact]:
    """`failed_ranks`, `waiting_ranks`, `missing_ranks`, `stopped_ranks`; `behind_ranks` with `behind_call` and
    `behind_sequence`, and `ahead_ranks` with the same, where ranks waited in other collectives; `spread` between the
    first and the last rank that failed, `same_second` where that is none."""
    yield from _ranks(failure)
    yield from _behind(failure)
    yield from _spread(failure)


def _ranks(failure: Failure) -> Iterator[Fact]:
    missing = _missing(failure)
    # The first that reports a wait for a rank that never came is one of those that waited.
    waited = missing is not None and any(map(failure.finding.has_role, (Role.TIMEOUT, Role.PEER_LOSS)))
    kinds = (
        ("failed_ranks", {"failed"} if waited else {"failed", "first"}),
        ("waiting_ranks", {"waited", "first"} if waited else {"waited"}),
        ("stopped_ranks", {"stopped"}),
    )
    gone = _gone(failure, missing)
    for name, wanted in kinds:
        marks = [mark for mark in failure.marks if mark.kind in wanted]
        if name == "waiting_ranks":
            marks = [mark for mark in marks if not gone.issuperset(mark.ranks)]
        if marks:
            yield _of_marks(failure, name, marks, gone if name == "waiting_ranks" else frozenset())
    if missing is not None:
        yield missing


def _gone(failure: Failure, missing: Fact | None) -> frozenset[int]:
    """-> the ranks that never came: what one of them printed at its end is no wait. Ranks that are behind do wait, in
    an earlier collective."""
    if missing is None or any(reason.name == "behind" for reason in failure.root.because):
        return frozenset()
    return frozenset(RankSet.from_json(str(missing.value)))


def _behind(failure: Failure) -> Iterator[Fact]:
    """Yields who waited in an earlier collective than the others, and in which ones both did."""
    reading = failure.reading
    collectives = reading.extractors.collectives
    suspects = collectives.suspects(reading.environment.world_size)
    if suspects is None or suspects.why != "behind":
        return
    for side, sequence in (("behind", suspects.sequence), ("ahead", suspects.others)):
        waits = [wait for wait in collectives.waits() if wait.sequence == sequence]
        if waits and sequence is not None:
            line, calls = waits[0].line, {wait.operation for wait in waits}
            yield failure.fact(f"{side}_ranks", str(RankSet.of(wait.rank for wait in waits)), line=line)
            yield failure.fact(f"{side}_sequence", sequence, line=line)
            if len(calls) == 1 and (call := calls.pop()) is not None:
                yield failure.fact(f"{side}_call", call, line=line)


def _missing(failure: Failure) -> Fact | None:
    told = next((reason for reason in failure.root.because if reason.name in _MISSED), None)
    if told is not None and told.values.get("ranks") is not None:
        return replace(failure.fact("missing_ranks", str(told.values["ranks"])), rank=None)
    missing = [mark for mark in failure.marks if mark.kind == "missing"]
    return _of_marks(failure, "missing_ranks", missing) if missing else None


def _of_marks(failure: Failure, name: str, marks: Iterable[RankMark], without: frozenset[int] = frozenset()) -> Fact:
    marks = list(marks)
    ranks = RankSet.of(rank for mark in marks for rank in mark.ranks if rank not in without)
    return Fact(name, str(ranks), None, marks[0].line, marks[0].file, None, failure.root.attempt or None)


def _spread(failure: Failure) -> Iterator[Fact]:
    """Yields how many seconds lie between the first and the last rank that failed on its own, where the clocks of their
    hosts can be compared."""
    if failure.reading.clock_offsets:
        return
    span, places = failure.reading.environment.span, failure.finding.places.values()
    told = [span.dated(place.time) for place in places]
    others = [mark for mark in failure.marks if mark.kind == "failed"]
    told += [time for mark in others for time in (mark.time, mark.until)]
    times = sorted(filter(None, told))
    seconds = seconds_between(times[0], times[-1]) if len(times) > 1 else None
    if seconds is None:
        return
    yield failure.fact("spread", round(seconds, 3), "s")
    if seconds < 1:
        count = len(failure.finding.ranks | {rank for mark in others for rank in mark.ranks})
        yield failure.fact("same_second", count, "ranks")


def failing_rank(failure: Failure) -> Iterator[Fact]:
    """`rank`, `local_rank`, `host`, `time`; `ranks` and `rank_count` that show the same failure, where several do."""
    root = failure.root
    for name, value in (("rank", root.rank), ("local_rank", root.local_rank), ("host", root.host), ("time", root.time)):
        if value is not None:
            yield failure.fact(name, value)
    on_one_host = root.rank is not None and root.rank == root.local_rank  # the local ranks are the ranks
    same = failure.finding.ranks or (failure.finding.local_ranks if on_one_host else frozenset())
    if len(same) > 1:
        yield failure.fact("ranks", str(RankSet.of(same)))
        yield failure.fact("rank_count", len(same), "ranks")
