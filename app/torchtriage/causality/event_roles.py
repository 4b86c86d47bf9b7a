"""What an event says of the run by who tells it: a launcher, a scheduler, a line that an entry knows."""

from __future__ import annotations

from torchtriage.causality.findings import Finding
from torchtriage.domain.entry import Kind
from torchtriage.domain.event import Event, EventSource

# Sources whose lines may tell more when they are read again.
REREAD = frozenset({EventSource.MATCHED_LINE, EventSource.CUT_TRACEBACK})
_ENDING_TYPES = ("ChildFailedError", "SignalException", "ProcessRaisedException", "ProcessExitedException")
_CAUSELESS = frozenset(
    {
        EventSource.SLURM,
        EventSource.MATCHED_LINE,
        EventSource.CUT_TRACEBACK,
        EventSource.LAUNCHER,
        EventSource.ELASTIC_AGENT,
        EventSource.FIRST_FAILURE,
        EventSource.OTHER_FAILURE,
    }
)


def tells_no_cause(event: Event) -> bool:
    """-> whether an event tells only that something ended, as launchers and schedulers do."""
    return event.source in _CAUSELESS


def tells_of_a_child(finding: Finding) -> bool:
    """-> whether a launcher says no more than that a worker of its failed."""
    match = finding.match
    echo = match is not None and match.entry.kind is Kind.CONSEQUENCE and match.entry.area == "elastic"
    return echo and finding.event.source not in REREAD


def ends_run(event: Event) -> bool:
    """-> whether a launch is over with an event, so that another one below it is another run."""
    if event.exception is not None:
        return event.exception.type.endswith(_ENDING_TYPES) or event.source is EventSource.LAUNCHER
    return event.source in (EventSource.FIRST_FAILURE, EventSource.SLURM)
