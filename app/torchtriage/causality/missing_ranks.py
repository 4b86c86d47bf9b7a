"""Finds the rank that the others waited for. It is the one that their timeouts point to, or the only rank of the run
that reports no lost or late peer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torchtriage.causality.grades import grade
from torchtriage.causality.thresholds import MIN_RANKS_LOSING_PEER
from torchtriage.domain.entry import Kind, Role
from torchtriage.domain.event import EventSource, Where
from torchtriage.runs.findings import Finding
from torchtriage.runs.run_reading import Reading


def rank_timeouts_point_to(reading: Reading) -> int | None:
    """Returns the rank that the timeouts of the others point to, or None if they point to several ranks or none."""
    suspects = reading.extractors.collectives.suspects(reading.facts.world_size)
    return next(iter(suspects.ranks)) if suspects is not None and len(suspects.ranks) == 1 else None


def awaited(finding: Finding, live: Iterable[Finding], reading: Reading) -> int | None:
    """Returns the only rank of the run that neither timed out waiting nor lost a connection, if the root cause is an
    exception of Gloo or NCCL on the other ranks. Returns None if there are several, or if the log does not report all
    ranks."""
    if not finding.has_role(Role.PEER_LOSS) or finding.event.where is not Where.EXCEPTION:
        return None
    same = [other for other in live if other.attempt == finding.attempt]
    left = {rank for other in same if other.has_role(Role.PEER_LOSS) for rank in other.ranks}
    size = reading.facts.world_size
    events = (other.event for other in reading.findings if other.attempt == finding.attempt)  # also those it stopped
    listed = {event.rank for event in events if event.source in (EventSource.FIRST_FAILURE, EventSource.OTHER_FAILURE)}
    known = set(range(size)) if size is not None else listed - {None}
    if size is None and len(left) >= MIN_RANKS_LOSING_PEER:
        known |= reading.ranks
    absent = known - left
    return absent.pop() if left and len(absent) == 1 else None


def earlier_cause_of_awaited(waited: Finding, live: Sequence[Finding], reading: Reading) -> Finding | None:
    """Returns the strongest finding of the one rank that the others waited for, printed before they timed out or lost
    it. `waited` is the finding that says they did. The message of a shell or library may be weak evidence, but no other
    rank can be the cause."""
    rank = rank_timeouts_point_to(reading) if waited.has_role(Role.TIMEOUT) else None
    rank = awaited(waited, live, reading) if rank is None else rank
    if rank is None:
        return None
    file, own_causes = waited.position.file, (other for other in live if other.ranks == {rank} and _is_cause(other))
    before = [other for other in own_causes if other.position < waited.position and other.position.file == file]
    return max(before, key=lambda finding: (grade(finding), finding.position), default=None)


def _is_cause(finding: Finding) -> bool:
    """Returns whether the finding is something that can stop a single rank."""
    entry = finding.match.entry if finding.match is not None else None
    return (
        entry is not None
        and (entry.kind is Kind.CAUSE or Role.PROCESS_END in entry.roles)
        and Role.DISTRIBUTED_SYMPTOM not in entry.roles
    )
