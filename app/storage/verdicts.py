"""Verdicts in the database. Each function is one step of a transaction that its caller opened."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from app.domain.incident import Finding, Job, State
from app.storage import counts, grouping, search
from app.storage.cursor import number_of
from app.storage.incidents import OPEN, change, is_id, job_text
from app.storage.tables import EarlierVerdictRow, IncidentRow

_ENDED = [State.TRIAGED, State.FAILED]


def save(session: Session, incident_id: str, verdict: dict[str, Any], finding: Finding, triaged_at: datetime) -> bool:
    """Keeps a verdict and puts the incident into its group -> True; False where another was quicker or it is gone."""
    row = session.execute(_locked(incident_id).where(IncidentRow.state.in_(OPEN))).scalar_one_or_none()
    if row is None:
        return False
    finding = grouping.told_apart(session, finding, Job(**row.job))
    _set(row, verdict, finding, triaged_at)
    if finding.fingerprint:
        row.group_number = grouping.join(session, finding.fingerprint, finding, row.received_at)
    session.flush()
    _find_by(session, row, finding)
    counts.move(session, None, counts.of(row))
    return True


def of_knowledge(verdict: dict[str, Any]) -> str:
    """-> what tells verdicts of today's engine and knowledge from older ones."""
    return f"{verdict.get('engine')} {verdict.get('knowledge')}"


def confirm(session: Session, incident_ids: list[str], knowledge: str) -> None:
    """Notes that today's knowledge says the same of these incidents."""
    numbers = [number_of(incident_id) for incident_id in incident_ids]
    change(session, [IncidentRow.number.in_(numbers), IncidentRow.state.in_(_ENDED)], {"knowledge": knowledge})


def replace(session: Session, incident_id: str, verdict: dict[str, Any], finding: Finding, now: datetime) -> bool:
    """Keeps a verdict of other knowledge, and the one before it too -> True; False where there is none to replace."""
    row = session.execute(_locked(incident_id).where(IncidentRow.state.in_(_ENDED))).scalar_one_or_none()
    if row is None:
        return False
    finding = grouping.told_apart(session, finding, Job(**row.job))
    before, group, counted = row.fingerprint, row.group_number, counts.of(row)
    if row.verdict is not None:
        session.add(
            EarlierVerdictRow(
                incident_number=row.number, verdict=row.verdict, triaged_at=row.triaged_at, replaced_at=now
            )
        )
    if finding.fingerprint != before:
        # Both at once and in the order that all keep to, so that two of these never wait for each other.
        grouping.hold(session, [known for known in (before, finding.fingerprint) if known])
        row.group_number = None
    _set(row, verdict, finding, now)
    session.flush()
    if finding.fingerprint != before:
        if group is not None:
            grouping.leave(session, group)
        if finding.fingerprint:
            row.group_number = grouping.join(session, finding.fingerprint, finding, row.received_at)
            session.flush()
    _find_by(session, row, finding)
    counts.move(session, counted, counts.of(row))
    return True


def earlier(session: Session, incident_id: str) -> list[dict[str, Any]]:
    """-> the verdicts that were replaced, the latest first."""
    query = select(EarlierVerdictRow.verdict).where(EarlierVerdictRow.incident_number == number_of(incident_id))
    return list(session.execute(query.order_by(EarlierVerdictRow.number.desc())).scalars())


def save_failure(session: Session, incident_id: str, failure: str, at: datetime) -> bool:
    """Keeps why an incident could not be triaged -> True; False where another was quicker or it is gone."""
    changes = {"state": State.FAILED, "failure": failure, "triaged_at": at}
    return change(session, [is_id(incident_id), IncidentRow.state.in_(OPEN)], changes)


def not_of(session: Session, knowledge: str, after: str, limit: int) -> list[str]:
    """-> ids above `after` of incidents whose verdict is of other knowledge, or that failed, in their order."""
    other = IncidentRow.knowledge.is_distinct_from(knowledge)
    ended = IncidentRow.state.in_(_ENDED)
    query = select(IncidentRow.number).where(IncidentRow.number > number_of(after), other, ended)
    return [str(number) for number in session.execute(query.order_by(IncidentRow.number).limit(limit)).scalars()]


def _locked(incident_id: str) -> Select[IncidentRow]:
    return select(IncidentRow).where(is_id(incident_id)).with_for_update()


def _set(row: IncidentRow, verdict: dict[str, Any], finding: Finding, at: datetime) -> None:
    columns = {
        "state": State.TRIAGED,
        "triaged_at": at,
        "failure": None,
        "verdict": verdict,
        "outcome": finding.outcome,
        "entry": finding.entry,
        "host": finding.host,
        "hardware": finding.hardware,
        "gpu_hours": finding.gpu_hours,
        "advice": (verdict.get("action") or {}).get("advice"),
        "knowledge": of_knowledge(verdict),
        "fingerprint": finding.fingerprint,
    }
    for name, value in columns.items():
        setattr(row, name, value)


def _find_by(session: Session, row: IncidentRow, finding: Finding) -> None:
    search.remove(session, row.number)
    search.put(session, row.number, f"{job_text(Job(**row.job))}\n{finding.text}")
