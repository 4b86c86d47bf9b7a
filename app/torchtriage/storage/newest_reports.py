"""The senders of recent incidents. Each function is one step of the caller's transaction."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from torchtriage.domain.newest_report import Report
from torchtriage.storage.tables import IncidentRow


def by_sender(session: Session, most: int) -> dict[str, Report]:
    """Returns, among the latest `most` incidents, the newest of each scheduler and of each label `source`."""
    row = IncidentRow
    scheduler, source = row.job["scheduler"].as_string(), row.job["labels"]["source"].as_string()
    columns = (row.number, row.received_at, func.coalesce(source, scheduler).label("sender"))
    latest = select(*columns).order_by(row.received_at.desc(), row.number.desc()).limit(most).subquery()
    found: dict[str, Report] = {}
    query = select(latest).where(latest.c.sender.is_not(None)).order_by(latest.c.received_at, latest.c.number)
    for number, at, sender in session.execute(query):
        found[sender] = Report(str(number), at)
    return found
