"""Decides about failed attempts, stores the decisions, and grades each when the next attempt is known."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy.orm import Session

from torchtriage.decision.decide import decide
from torchtriage.decision.failure import failure_of, record_of
from torchtriage.decision.grade import grade
from torchtriage.domain.decision import AttemptRecord, DecisionMode, DecisionRecord, Score
from torchtriage.domain.incident import Incident, Job
from torchtriage.errors import NotTriaged
from torchtriage.facts.ending_regexes import EndingRegexes
from torchtriage.services.service import Service
from torchtriage.storage import decisions, incidents
from torchtriage.storage.decisions import DecisionFilter
from torchtriage.storage.pagination import Page


def decide_about(
    service: Service,
    incident_id: str,
    by: str,
    attempt: int | None = None,
    history: Sequence[AttemptRecord] | None = None,
    now: datetime | None = None,
) -> DecisionRecord:
    """Decides what to do about an incident's attempt, and stores the decision. A later call decides again, until the
    next attempt is known.

    `attempt` counts from 0. Its default is the job's attempt, or else the number of earlier ones. `history` lists the
    earlier attempts; by default they are the earlier incidents of the job. Raises NotFound and NotTriaged.
    """
    now = now or datetime.now(UTC)
    mode: DecisionMode = "enforce" if service.settings.decisions == "enforce" else "dry-run"
    with service.database.transaction() as session:
        incident = incidents.read(session, incident_id)
        if not incident.state.final:
            raise NotTriaged("the incident has no verdict yet", state=incident.state, incident=incident.id)
        known = tuple(history) if history is not None else _earlier(session, incident)
        number = attempt if attempt is not None else incident.job.attempt
        if number is None:
            number = 1 + max((one.attempt for one in known), default=-1)
        failure = failure_of(incident.verdict, number, _ended_badly(service, incident.job))
        decisions.put(session, incident, decide(service.policy, failure, known), by, mode, now)
        kept = decisions.of_incident(session, incident.id)
        assert kept is not None
        return kept


def list_decisions(
    service: Service, wanted: DecisionFilter, limit: int = 50, cursor: str | None = None
) -> Page[DecisionRecord]:
    """Returns a page of decisions, newest first. Raises BadCursor."""
    with service.database.reading() as session:
        return decisions.listed(session, wanted, limit, cursor)


def score(service: Service) -> list[Score]:
    """Returns how the latest decisions turned out, by action."""
    with service.database.reading() as session:
        return decisions.score(session)


def grade_earlier(session: Session, incident_ids: Sequence[str], at: datetime) -> None:
    """Grades the decisions about earlier attempts of these incidents' jobs. The incidents have just got their verdicts,
    in this transaction. An attempt that has not ended proves nothing yet."""
    waiting = decisions.ungraded(session, incident_ids) if incident_ids else []
    if not waiting:
        return
    found = incidents.many(session, list(incident_ids))
    for record in waiting:
        before = incidents.read(session, record.incident or "")
        later = [one for one in found if _is_after(before, record, one) and not one.job.provisional]
        following = min(later, key=lambda one: (one.job.attempt or 0, one.received_at), default=None)
        if following is None or following.verdict is None:
            continue
        after = record_of(following.verdict, following.job.attempt or record.decision.attempt.attempt + 1)
        decisions.set_grade(session, record.id, grade(record.decision, after), following.id, at)


def grade_by_good_end(session: Session, job_id: str, cluster: str | None, at: datetime) -> None:
    """Grades the decisions about earlier attempts of a job that has ended successfully, in this transaction."""
    for record in decisions.ungraded_of_job(session, job_id, cluster):
        well = AttemptRecord(record.decision.attempt.attempt + 1, "healthy")
        decisions.set_grade(session, record.id, grade(record.decision, well), None, at)


def _is_after(before: Incident, record: DecisionRecord, later: Incident) -> bool:
    """Returns whether an incident is of a later attempt of the job. Compares attempt numbers, or else the times of
    receipt. Without numbers, nodes that report separately have separate attempts."""
    if (before.job.job_id, before.job.cluster) != (later.job.job_id, later.job.cluster):
        return False
    if later.job.attempt is not None:
        return later.job.attempt > record.decision.attempt.attempt
    return later.received_at > before.received_at and _share_a_node(before.job, later.job)


def _earlier(session: Session, incident: Incident) -> tuple[AttemptRecord, ...]:
    """Returns the earlier attempts of the job. If nodes report separately, one attempt has several incidents; the first
    one that names a cause is used. Attempts without a number are numbered in order of receipt, per node."""
    found: dict[int, AttemptRecord] = {}
    earlier = [one for one in decisions.earlier_incidents(session, incident) if _may_be_another(one, incident)]
    for at, one in enumerate(earlier):
        if one.verdict is None:
            continue
        number = one.job.attempt if one.job.attempt is not None else at
        known = found.get(number)
        if known is None or (known.entry is None and one.entry is not None):
            found[number] = record_of(one.verdict, number)
    return tuple(found.values())


def _may_be_another(earlier: Incident, incident: Incident) -> bool:
    """Returns whether an incident can be of another attempt. Without attempt numbers, another node's report may be of
    the same attempt."""
    return earlier.job.attempt is not None or _share_a_node(earlier.job, incident.job)


def _share_a_node(one: Job, other: Job) -> bool:
    """Returns whether both jobs have a report of the same node. Without node ranks, a report is of the whole job."""
    return bool(_nodes(one) & _nodes(other))


def _nodes(job: Job) -> set[str]:
    return set(job.reports) or {"" if job.node_rank is None else str(job.node_rank)}


def _ended_badly(service: Service, job: Job) -> bool:
    """Returns whether the sender says that the job failed."""
    states = EndingRegexes(service.knowledge.vocabulary).failed_states
    return bool(job.exit_code) or (job.state or "").upper().replace("-", "_") in states
