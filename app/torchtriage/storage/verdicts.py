"""Verdicts in the database. Each function is one step of a transaction that its caller opened."""

from __future__ import annotations

from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

from sqlalchemy import Table, bindparam, insert, select, update
from sqlalchemy.orm import Session

from torchtriage.causality import fingerprint
from torchtriage.domain.incident import Finding, Job, State
from torchtriage.storage import daily_counts, full_text_search, group_assignment, group_merging
from torchtriage.storage.incidents import OPEN, change, is_id
from torchtriage.storage.new_incidents import job_text
from torchtriage.storage.pagination import number_of
from torchtriage.storage.tables import EarlierVerdictRow, FingerprintRow, IncidentRow

_ENDED = [State.TRIAGED, State.FAILED]


# Statements made once and without the ORM, which takes longer than the engine takes for a short log.
_INCIDENTS, _EARLIER = cast(Table, IncidentRow.__table__), cast(Table, EarlierVerdictRow.__table__)
_COUNTED = ("received_at", "cluster", "outcome", "entry", "host", "hardware", "gpu_hours")
_KNOWN = [_INCIDENTS.c[name] for name in ("number", "job", "fingerprint", "group_number", *_COUNTED)]
_SET = update(_INCIDENTS).where(_INCIDENTS.c.number == bindparam("of"))
_REMEMBER = insert(_EARLIER).from_select(
    ["incident_number", "verdict", "triaged_at", "replaced_at"],
    select(
        _INCIDENTS.c.number,
        _INCIDENTS.c.verdict,
        _INCIDENTS.c.triaged_at,
        bindparam("now", type_=_EARLIER.c.replaced_at.type),
    ).where(_INCIDENTS.c.number == bindparam("of"), _INCIDENTS.c.verdict.is_not(None)),
)


def save(
    session: Session,
    incident_id: str,
    verdict: dict[str, Any],
    finding: Finding,
    triaged_at: datetime,
    settled: bool = True,
) -> bool:
    """Keeps a verdict and puts the incident into its group -> True; False where another was quicker or it is gone.

    Where it is not `settled` yet which groups of older knowledge live on under which fingerprint, a new group is
    provisional.
    """
    row = _found(session, _LOCKED, incident_id, OPEN)
    if row is None:
        return False
    finding = group_assignment.told_apart(session, finding, Job(**row.job))
    origin = group_assignment.Origin(of_knowledge(verdict), provisional=not settled)
    group = finding.fingerprint and group_assignment.join(
        session, finding.fingerprint, finding, row.received_at, origin
    )
    _set(session, row, verdict, finding, triaged_at, group)
    daily_counts.move(session, None, daily_counts.of(_after(row, finding)))
    return True


def of_knowledge(verdict: dict[str, Any]) -> str:
    """-> what tells verdicts of today's engine, knowledge and rules of fingerprints from older ones."""
    return f"{verdict.get('engine')} {verdict.get('knowledge')} {fingerprint.VERSION}"


def confirm(session: Session, incident_ids: list[str], knowledge: str) -> None:
    """Notes that today's knowledge says the same of these incidents."""
    numbers = [number_of(incident_id) for incident_id in incident_ids]
    change(session, [IncidentRow.number.in_(numbers), IncidentRow.state.in_(_ENDED)], {"knowledge": knowledge})


def replace(session: Session, incident_id: str, verdict: dict[str, Any], finding: Finding, now: datetime) -> bool:
    """Keeps a verdict of other knowledge, and the one before it too -> True; False where there is none to replace."""
    before = _found(session, _KNOWN_IN, incident_id, _ENDED)
    if before is None:
        return False
    finding = group_assignment.told_apart(session, finding, Job(**before.job))
    if finding.fingerprint != before.fingerprint:
        group_merging.begin_leaving(session, before.group_number, [finding.fingerprint] if finding.fingerprint else [])
    row = _found(session, _LOCKED, incident_id, _ENDED)
    if row is None:
        return False
    session.connection().execute(_REMEMBER, {"of": row.number, "now": now})
    group = row.group_number
    if finding.fingerprint != row.fingerprint:
        was = session.get(FingerprintRow, row.fingerprint) if row.fingerprint else None
        origin = group_assignment.Origin(of_knowledge(verdict), was.group_number if was else None)
        group = finding.fingerprint and group_assignment.join(
            session, finding.fingerprint, finding, row.received_at, origin
        )
    _set(session, row, verdict, finding, now, group)
    if finding.fingerprint != row.fingerprint and row.group_number is not None:
        # Which may be where it went: under another fingerprint of the group, or of a merge.
        group_merging.leave(session, row.group_number, group if isinstance(group, int) else None)
    daily_counts.move(session, daily_counts.of(row), daily_counts.of(_after(row, finding)))
    return True


def earlier(session: Session, incident_id: str) -> list[dict[str, Any]]:
    """-> the verdicts that were replaced, the latest first."""
    query = select(EarlierVerdictRow.verdict).where(EarlierVerdictRow.incident_number == number_of(incident_id))
    return list(session.execute(query.order_by(EarlierVerdictRow.number.desc())).scalars())


def save_failure(session: Session, incident_id: str, failure: str, at: datetime) -> bool:
    """Keeps why an incident could not be triaged -> True; False where another was quicker or it is gone."""
    changes = {"state": State.FAILED, "failure": failure, "triaged_at": at}
    return change(session, [is_id(incident_id), IncidentRow.state.in_(OPEN)], changes)


# Held, it stays as it is until the transaction ends.
_KNOWN_IN = select(*_KNOWN).where(
    _INCIDENTS.c.number == bindparam("of"), _INCIDENTS.c.state.in_(bindparam("states", expanding=True))
)
_LOCKED = _KNOWN_IN.with_for_update()


def _found(session: Session, query: Any, incident_id: str, states: list[State]) -> Any:
    """-> what is known of an incident in one of these states; None where it is not."""
    return session.connection().execute(query, {"of": number_of(incident_id), "states": states}).one_or_none()


def _set(
    session: Session, row: Any, verdict: dict[str, Any], finding: Finding, at: datetime, group: int | str | None
) -> None:
    columns = {
        "of": row.number,
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
        "group_number": group or None,
    }
    session.connection().execute(_SET, columns)
    full_text_search.replace(session, row.number, f"{job_text(Job(**row.job))}\n{finding.text}")


def _after(row: Any, finding: Finding) -> Any:
    """-> what is counted of an incident that has this verdict now."""
    told = {name: getattr(finding, name) for name in ("outcome", "entry", "host", "hardware", "gpu_hours")}
    return SimpleNamespace(received_at=row.received_at, cluster=row.cluster, **told)
