"""Decisions in the database. Each function is one step of the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from sqlalchemy import BindParameter, ColumnElement, Select, bindparam, func, select, update
from sqlalchemy.orm import Session

from torchtriage.domain.decision import (
    ACTIONS,
    Decision,
    DecisionAction,
    DecisionMode,
    DecisionRecord,
    Grade,
    Score,
)
from torchtriage.domain.incident import Incident, Job
from torchtriage.domain.json_form import fields_form, from_json_form
from torchtriage.storage import incidents
from torchtriage.storage.database import insert
from torchtriage.storage.new_incidents import MAX_JOB_ID_LENGTH
from torchtriage.storage.pagination import Page, decode, encode, number_of
from torchtriage.storage.tables import DecisionRow, IncidentRow

SCORED = 10_000  # latest decisions that the score counts
_MAX_EARLIER = 200


@dataclass(frozen=True, slots=True)
class DecisionFilter:
    """The decisions to look for; None means any. `grade` may be `waiting`: the next attempt is not known yet."""

    incident: str | None = None
    job_id: str | None = None
    action: DecisionAction | None = None
    grade: str | None = None


def put(session: Session, incident: Incident, decision: Decision, by: str, mode: DecisionMode, at: datetime) -> None:
    """Stores the decision about an incident. Replaces an earlier one that is not graded yet."""
    values = {
        "at": at,
        "by": by,
        "mode": mode,
        "job_id": _key(incident.job.job_id),
        "cluster": incident.job.cluster,
        "attempt": decision.attempt.attempt,
        "action": decision.action,
        "document": fields_form(decision),
    }
    adding = insert(session, DecisionRow).values(incident_number=number_of(incident.id), **values)
    session.execute(
        adding.on_conflict_do_update(index_elements=["incident_number"], set_=values, where=DecisionRow.grade.is_(None))
    )


def of_incident(session: Session, incident_id: str) -> DecisionRecord | None:
    """Returns the decision about an incident, or None."""
    query = _RECORDS.where(DecisionRow.incident_number == number_of(incident_id))
    found = _records(session, query.execution_options(populate_existing=True))
    return found[0] if found else None


def listed(session: Session, wanted: DecisionFilter, limit: int, cursor: str | None) -> Page[DecisionRecord]:
    """Returns a page of matching decisions, newest first. Raises BadCursor."""
    query = _RECORDS.order_by(DecisionRow.number.desc()).limit(limit + 1)
    if wanted.incident is not None:
        query = query.where(DecisionRow.incident_number == number_of(wanted.incident))
    if wanted.job_id is not None:
        query = query.where(DecisionRow.job_id == _key(wanted.job_id), _whole_job_id == wanted.job_id)
    if wanted.action is not None:
        query = query.where(DecisionRow.action == wanted.action)
    if wanted.grade is not None:
        query = query.where(
            DecisionRow.grade.is_(None) if wanted.grade == "waiting" else DecisionRow.grade == wanted.grade
        )
    if cursor is not None:
        query = query.where(DecisionRow.number < decode(cursor, 1)[0])
    found = _records(session, query)
    more = encode(int(found[limit - 1].id)) if len(found) > limit else None
    return Page(tuple(found[:limit]), more)


def score(session: Session) -> list[Score]:
    """Returns how the latest SCORED decisions turned out, for each action in the order of ACTIONS."""
    latest = select(DecisionRow.action, DecisionRow.grade).order_by(DecisionRow.number.desc()).limit(SCORED).subquery()
    query = select(latest.c.action, latest.c.grade, func.count()).group_by(latest.c.action, latest.c.grade)
    found: dict[str, dict[str, int]] = {action: {} for action in ACTIONS}
    for action, grade, count in session.execute(query):
        found[action][grade or "waiting"] = int(count)
    return [Score(action, **found[action]) for action in ACTIONS]


def earlier_incidents(session: Session, incident: Incident) -> list[Incident]:
    """Returns the earlier incidents of the same job, oldest first; at most the latest _MAX_EARLIER."""
    job = incident.job
    if job.job_id is None:
        return []
    query = select(IncidentRow.number).where(
        IncidentRow.job_id == _key(job.job_id),
        _whole_job_id == job.job_id,
        _same_cluster(job),
        IncidentRow.number != number_of(incident.id),
        IncidentRow.outcome.is_not(None),
        IncidentRow.attempt < job.attempt
        if job.attempt is not None
        else IncidentRow.received_at < incident.received_at,
    )
    query = query.order_by(IncidentRow.received_at.desc(), IncidentRow.number.desc()).limit(_MAX_EARLIER)
    return incidents.many(session, [str(number) for number in reversed(session.execute(query).scalars().all())])


def ungraded(session: Session, incident_ids: Sequence[str]) -> list[DecisionRecord]:
    """Returns the ungraded decisions about other incidents of the same jobs. May include jobs whose long ids begin
    alike."""
    numbers = [number_of(incident_id) for incident_id in incident_ids]
    return [_record(row, job_id) for row, job_id in session.execute(_UNGRADED, {"these": numbers})]


def ungraded_of_job(session: Session, job_id: str, cluster: str | None) -> list[DecisionRecord]:
    """Returns the ungraded decisions about this job."""
    same_cluster = DecisionRow.cluster == cluster if cluster is not None else DecisionRow.cluster.is_(None)
    query = _RECORDS.where(DecisionRow.job_id == _key(job_id), _whole_job_id == job_id, same_cluster)
    return _records(session, query.where(DecisionRow.grade.is_(None)).order_by(DecisionRow.number))


def set_grade(session: Session, decision_id: str, grade: Grade, by_incident: str | None, at: datetime) -> None:
    """Stores the grade of a decision. `by_incident` is the later attempt that shows it, or None for a
    successful run."""
    graded = update(DecisionRow).where(DecisionRow.number == number_of(decision_id), DecisionRow.grade.is_(None))
    number = number_of(by_incident) if by_incident is not None else None
    session.execute(graded.values(grade=grade, graded_at=at, graded_by=number))


def _same_cluster(job: Job) -> ColumnElement[bool]:
    return IncidentRow.cluster == job.cluster if job.cluster is not None else IncidentRow.cluster.is_(None)


# Indexes contain only the start of a job's id; the incident has the whole id.
_whole_job_id = IncidentRow.job["job_id"].as_string()
_RECORDS = select(DecisionRow, _whole_job_id).join(IncidentRow, IncidentRow.number == DecisionRow.incident_number)

_THESE: BindParameter[int] = bindparam("these", expanding=True)
# Built once, because it runs with every batch of verdicts.
_UNGRADED = _RECORDS.where(
    DecisionRow.job_id.in_(select(IncidentRow.job_id).where(IncidentRow.number.in_(_THESE))),
    DecisionRow.grade.is_(None),
    DecisionRow.incident_number.not_in(_THESE),
).order_by(DecisionRow.number)


def _key(job_id: str | None) -> str | None:
    return job_id[:MAX_JOB_ID_LENGTH] if job_id else None


def _records(session: Session, query: Select[DecisionRow, str]) -> list[DecisionRecord]:
    return [_record(row, job_id) for row, job_id in session.execute(query)]


def _record(row: DecisionRow, job_id: str | None) -> DecisionRecord:
    return DecisionRecord(
        str(row.number),
        row.at,
        row.by,
        cast(DecisionMode, row.mode),
        from_json_form(Decision, row.document),
        str(row.incident_number),
        job_id,
        row.cluster,
        cast("Grade | None", row.grade),
        row.graded_at,
        str(row.graded_by) if row.graded_by else None,
    )
