"""The audit log in the database. Each function is one step of the caller's transaction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from torchtriage.domain.access import AuditLine
from torchtriage.reading.redaction.redact import redact
from torchtriage.storage.pagination import Page, decode, encode
from torchtriage.storage.tables import ChangeRow


def add(session: Session, change: AuditLine) -> None:
    """Adds a change without secrets in people's texts, because rows of the audit log are never deleted."""
    detail = _clean(change.detail)
    session.add(ChangeRow(at=change.at, by=change.by, action=change.action, subject=change.subject, detail=detail))


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """The changes to look for; None means any. `subject` is what was changed, such as `group 7`, and `kind` its first
    word. `since` is included, `until` is not."""

    subject: str | None = None
    by: str | None = None
    kind: str | None = None
    action: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def listed(session: Session, wanted: ChangeFilter, limit: int, cursor: str | None) -> Page[AuditLine]:
    """Returns a page of matching changes, newest first. Raises BadCursor."""
    query = select(ChangeRow).order_by(ChangeRow.number.desc()).limit(limit + 1)
    if wanted.subject is not None:
        query = query.where(ChangeRow.subject == wanted.subject)
    if wanted.by is not None:
        query = query.where(ChangeRow.by == wanted.by)
    if wanted.kind is not None:
        of_kind = ChangeRow.subject.startswith(f"{wanted.kind} ", autoescape=True)
        query = query.where((ChangeRow.subject == wanted.kind) | of_kind)
    if wanted.action is not None:
        query = query.where(ChangeRow.action == wanted.action)
    if wanted.since is not None:
        query = query.where(ChangeRow.at >= wanted.since)
    if wanted.until is not None:
        query = query.where(ChangeRow.at < wanted.until)
    if cursor is not None:
        query = query.where(ChangeRow.number < decode(cursor, 1)[0])
    rows = session.execute(query).scalars().all()
    more = encode(rows[limit - 1].number) if len(rows) > limit else None
    return Page(tuple(map(_change, rows[:limit])), more)


def people(session: Session, looked_at: int) -> tuple[str, ...]:
    """Returns who made the latest `looked_at` changes, in alphabetical order."""
    latest = select(ChangeRow.by).order_by(ChangeRow.number.desc()).limit(looked_at).subquery()
    return tuple(sorted(session.execute(select(latest.c.by).distinct()).scalars()))


def _change(row: ChangeRow) -> AuditLine:
    return AuditLine(row.at, row.by, row.action, row.subject, row.detail, str(row.number))


def _clean(value: Any) -> Any:
    match value:
        case str():
            return redact(value)
        case dict():
            return {name: _clean(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_clean(inner) for inner in value]
    return value
