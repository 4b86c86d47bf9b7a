"""The trail of changes in the database. Each function is one step of a transaction that its caller opened."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.domain.access import Change
from app.storage.cursor import Page, decode, encode
from app.storage.tables import ChangeRow


def add(session: Session, change: Change) -> None:
    session.add(
        ChangeRow(at=change.at, by=change.by, action=change.action, subject=change.subject, detail=change.detail)
    )


def listed(session: Session, subject: str | None, limit: int, cursor: str | None) -> Page[Change]:
    """-> changes of a subject, or all, the latest first. Raises BadCursor."""
    query = select(ChangeRow).order_by(ChangeRow.number.desc()).limit(limit + 1)
    if subject is not None:
        query = query.where(ChangeRow.subject == subject)
    if cursor is not None:
        query = query.where(ChangeRow.number < decode(cursor, 1)[0])
    rows = session.execute(query).scalars().all()
    more = encode(rows[limit - 1].number) if len(rows) > limit else None
    return Page(tuple(Change(row.at, row.by, row.action, row.subject, row.detail) for row in rows[:limit]), more)
