"""The rank for which all others waited: what the waiting says of it, and what it told itself before they did."""

from __future__ import annotations

from collections.abc import Iterable

from app.domain.entry import Kind
from app.reading.lines import FILE_SPAN
from app.triage.cascade import ECHO_AREAS, grade
from app.triage.folding import Finding
from app.triage.reading_run import RunReading

TIMED_OUT = frozenset({"nccl.timeout", "gloo.timeout"})


def missed(reading: RunReading) -> int | None:
    """-> the rank at which the waiting of the others points, where it is a single one."""
    suspects = reading.extractors.collectives.suspects(reading.environment.world_size)
    return next(iter(suspects.ranks)) if suspects is not None and len(suspects.ranks) == 1 else None


def told_before(waited: Finding, live: Iterable[Finding], reading: RunReading) -> Finding | None:
    """-> the strongest finding, before the others gave up waiting, that is of the one rank for which they waited:
    where `waited` is that they did. What a shell or a library says of it may be weak, but nobody else is to blame."""
    rank = missed(reading) if waited.entry in TIMED_OUT else None
    if rank is None:
        return None
    file, told = waited.order // FILE_SPAN, (other for other in live if other.ranks == {rank} and _is_cause(other))
    before = [other for other in told if other.order < waited.order and other.order // FILE_SPAN == file]
    return max(before, key=lambda finding: (grade(finding), finding.order), default=None)


def _is_cause(finding: Finding) -> bool:
    """-> whether the finding is of something that can stop a rank of its own."""
    entry = finding.match.entry if finding.match is not None else None
    return entry is not None and (entry.kind is Kind.CAUSE or entry.area == "process") and entry.area not in ECHO_AREAS
