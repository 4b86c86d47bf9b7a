"""Verdicts counted by day, cluster, outcome and entry, so that charts of a year need not read a million incidents.

A count changes in the transaction that changes its incident, which holds that incident's row: whoever changes or
removes a verdict calls `move` last, with what it was and what it is. A transaction changes the counts of one incident
only, and after its groups, so that two of them never wait for each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from app.storage.database import insert
from app.storage.tables import DailyCountRow, IncidentRow

NONE = ""  # in a column of the key, for an incident that has no cluster or entry


@dataclass(frozen=True, slots=True, order=True)
class Counted:
    """What one verdict adds, and where to; `day` is in UTC."""

    day: str
    cluster: str
    outcome: str
    entry: str
    gpu_hours: float


def of(row: IncidentRow) -> Counted | None:
    """-> what an incident adds to the counts; None where it has no verdict."""
    if row.outcome is None:
        return None
    day = row.received_at.astimezone(UTC).date().isoformat()
    return Counted(day, row.cluster or NONE, row.outcome, row.entry or NONE, row.gpu_hours or 0.0)


def move(session: Session, before: Counted | None, after: Counted | None) -> None:
    """Takes what an incident added from the counts, and adds what it adds now."""
    if before == after:
        return
    changes = [(counted, sign) for counted, sign in ((before, -1), (after, 1)) if counted is not None]
    for counted, sign in sorted(changes):  # the order that all keep to
        _add(session, counted, sign)


def of_entry(session: Session, entry: str) -> dict[str, int]:
    """-> how many verdicts of each day, as `2026-05-01`, name the entry."""
    query = select(DailyCountRow.day, func.sum(DailyCountRow.count)).where(DailyCountRow.entry == entry)
    return {day: int(count) for day, count in session.execute(query.group_by(DailyCountRow.day))}


def _add(session: Session, counted: Counted, sign: int) -> None:
    key = {"day": counted.day, "cluster": counted.cluster, "outcome": counted.outcome, "entry": counted.entry}
    hours = sign * counted.gpu_hours
    adding = insert(session, DailyCountRow).values(**key, count=sign, gpu_hours=hours)
    added = {"count": DailyCountRow.count + sign, "gpu_hours": DailyCountRow.gpu_hours + hours}
    session.execute(adding.on_conflict_do_update(index_elements=list(key), set_=added))
    if sign < 0:
        empty = [getattr(DailyCountRow, name) == value for name, value in key.items()]
        session.execute(delete(DailyCountRow).where(*empty, DailyCountRow.count == 0))
