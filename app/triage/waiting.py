"""The rank that others waited for in vain: the only one of the run that tells of no lost or late peer; a rank out."""

from __future__ import annotations

from app.domain.event import Where
from app.triage.folding import Finding
from app.triage.reading_run import RunReading
from app.triage.root_cause import Choice

_OF_GLOO = frozenset({"gloo.timeout", "gloo.error"})


def awaited(finding: Finding, choice: Choice, reading: RunReading) -> int | None:
    """-> the only rank of the run that neither gave up waiting nor lost a connection, where Gloo's exceptions on the
    others are the root cause; None where there are more, or the log does not tell of all ranks."""
    if finding.entry not in _OF_GLOO or finding.event.where is not Where.EXCEPTION:
        return None
    same = [other for other in choice.live if other.attempt == finding.attempt]
    left = {rank for other in same if other.entry in _OF_GLOO for rank in other.ranks}
    size = reading.environment.world_size
    told = (other.event for other in reading.findings if other.attempt == finding.attempt)  # those that it stopped too
    listed = {event.rank for event in told if event.source in ("elastic first", "elastic report")}
    absent = (set(range(size)) if size is not None else listed - {None}) - left
    return absent.pop() if left and len(absent) == 1 else None
