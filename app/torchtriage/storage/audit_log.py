"""The audit log in the database. Each function is one step of the caller's transaction."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from torchtriage.domain.access import Change
from torchtriage.reading.redaction.redact import redact
from torchtriage.storage.pagination import Page, decode, encode
from torchtriage.storage.tables import ChangeRow


def add(session: Session, change: Change) -> None:
    """Adds a change without secrets in people's texts, because rows of the audit log are never deleted."""
    detail = _clean(change.detail)
    session.add(ChangeRow(at=change.at, by=change.by, action=change.action, subject=change.subject, detail=detail))


def listed(
    session: Session, subject: str | None, limit: int, cursor: str | None, by: str | None = None
) -> Page[Change]:
    """Returns a page of changes, newest first: of a subject, of a person, or all. Raises BadCursor."""
    query = select(ChangeRow).order_by(ChangeRow.number.desc()).limit(limit + 1)
    if subject is not None:
        query = query.where(ChangeRow.subject == subject)
    if by is not None:
        query = query.where(ChangeRow.by == by)
    if cursor is not None:
        query = query.where(ChangeRow.number < decode(cursor, 1)[0])
    rows = session.execute(query).scalars().all()
    more = encode(rows[limit - 1].number) if len(rows) > limit else None
    return Page(tuple(map(_change, rows[:limit])), more)


def _change(row: ChangeRow) -> Change:
    return Change(row.at, row.by, row.action, row.subject, row.detail, str(row.number))


def _clean(value: Any) -> Any:
    match value:
        case str():
            return redact(value)
        case dict():
            return {name: _clean(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_clean(inner) for inner in value]
    return value
