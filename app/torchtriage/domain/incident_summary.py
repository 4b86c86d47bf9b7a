"""An incident as a row of a list: the few parts of a stored verdict that the row shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from torchtriage.domain.group import GroupMark
from torchtriage.domain.incident import Incident, Job, State
from torchtriage.domain.verdict import Evidence


@dataclass(frozen=True, slots=True)
class RootSummary:
    """The parts of a verdict's root cause that a row shows. The names are those of RootCause."""

    entry: str | None
    title: str
    confidence: str
    rank: int | None = None
    host: str | None = None
    owner: str | None = None
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerSummary:
    """The parts of a verdict's answer that form its first sentence. The names are those of Answer."""

    case: str | None
    says: str
    values: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IncidentSummary:
    """An incident as a row of a list. `failure` says why there is no verdict if `state` is failed. `retry` is Action's
    word for a retry. `group_owner` is the owner of the group."""

    id: str
    state: State
    received_at: datetime
    job: Job
    outcome: str | None = None
    root: RootSummary | None = None
    answer: AnswerSummary | None = None
    retry: str | None = None
    gpu_hours_lost: float | None = None
    group: GroupMark | None = None
    group_owner: str | None = None
    failure: str | None = None


def summary_of(incident: Incident) -> IncidentSummary:
    """Returns the row of an incident that was read completely."""
    verdict, root = incident.verdict, incident.root_cause
    answer = verdict.answer if verdict else None
    return IncidentSummary(
        id=incident.id,
        state=incident.state,
        received_at=incident.received_at,
        job=incident.job,
        outcome=verdict.outcome if verdict else None,
        root=RootSummary(root.entry, root.title, root.confidence, root.rank, root.host, root.owner, root.evidence)
        if root
        else None,
        answer=AnswerSummary(answer.case, answer.says, answer.values) if answer else None,
        retry=verdict.action.retry_word if verdict else None,
        gpu_hours_lost=incident.gpu_hours_lost,
        group=incident.group,
        failure=incident.failure,
    )


@dataclass(frozen=True, slots=True)
class SenderReport:
    """The newest incident from one kind of sender: its id, and when it was received."""

    incident: str
    at: datetime
