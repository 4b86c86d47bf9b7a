"""Groups in the database: read, list, change. Each function is one step of a transaction that its caller opened."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, and_, or_, select
from sqlalchemy.orm import Session

from app.domain.group import Group, GroupChange, GroupFilter, GroupStatus
from app.errors import NotFound
from app.storage.cursor import Page, decode, encode, number_of
from app.storage.tables import FingerprintRow, GroupRow

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read(session: Session, group_id: str) -> Group:
    """-> the group with its fingerprints; raises NotFound."""
    row = row_of(session, group_id)
    fingerprints = select(FingerprintRow.fingerprint).where(FingerprintRow.group_number == row.number)
    merged = select(GroupRow.number).where(GroupRow.merged_into == row.number).order_by(GroupRow.number)
    return _group(
        row,
        tuple(str(number) for number in session.execute(merged).scalars()),
        tuple(sorted(session.execute(fingerprints).scalars())),
    )


def listed(session: Session, wanted: GroupFilter, limit: int, cursor: str | None) -> Page[Group]:
    """-> groups that fit, the latest seen first; what was merged is left out. Raises BadCursor."""
    equal = {GroupRow.status: wanted.status, GroupRow.entry: wanted.entry, GroupRow.outcome: wanted.outcome}
    conditions: list[ColumnElement[bool]] = [known == value for known, value in equal.items() if value is not None]
    conditions.append(GroupRow.merged_into.is_(None))
    if cursor is not None:
        microseconds, number = decode(cursor, 2)
        seen = _EPOCH + timedelta(microseconds=microseconds)
        conditions.append(or_(GroupRow.last_seen < seen, and_(GroupRow.last_seen == seen, GroupRow.number < number)))
    order = (GroupRow.last_seen.desc(), GroupRow.number.desc())
    rows = session.execute(select(GroupRow).where(*conditions).order_by(*order).limit(limit + 1)).scalars().all()
    more = _place(rows[limit - 1]) if len(rows) > limit else None
    return Page(tuple(_group(row) for row in rows[:limit]), more)


def change(session: Session, group_id: str, wanted: GroupChange, now: datetime) -> Group:
    """-> the group as it is now; raises NotFound."""
    row = row_of(session, group_id)
    if wanted.status is not None and wanted.status != row.status:
        row.status = wanted.status
        row.resolved_at = now if wanted.status is GroupStatus.RESOLVED else None
        row.regressed_at = None
    if wanted.owner is not None:
        row.owner = wanted.owner or None
    if wanted.note is not None:
        row.note = wanted.note or None
    session.flush()
    return read(session, group_id)


def row_of(session: Session, group_id: str) -> GroupRow:
    """-> the row, for the modules of the storage; raises NotFound."""
    row = session.get(GroupRow, number_of(group_id))
    if row is None:
        raise NotFound("there is no such group", group=group_id[:100])
    return row


def _place(row: GroupRow) -> str:
    return encode((row.last_seen - _EPOCH) // timedelta(microseconds=1), row.number)


def _group(row: GroupRow, merged: tuple[str, ...] = (), fingerprints: tuple[str, ...] = ()) -> Group:
    return Group(
        id=str(row.number),
        status=GroupStatus(row.status),
        count=row.count,
        signature=row.signature,
        title=row.title,
        entry=row.entry,
        outcome=row.outcome,
        first_seen=row.first_seen,
        last_seen=row.last_seen,
        resolved_at=row.resolved_at,
        regressed_at=row.regressed_at,
        owner=row.owner,
        note=row.note,
        gpu_hours_lost=row.gpu_hours,
        merged_into=str(row.merged_into) if row.merged_into else None,
        merged=merged,
        fingerprints=fingerprints,
    )
