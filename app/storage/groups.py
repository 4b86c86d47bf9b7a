"""Groups of incidents in the database. Each function is one step of a transaction that its caller opened."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, and_, case, delete, func, or_, select, update
from sqlalchemy.orm import Session

from app.domain.incident import Finding, Group, GroupFilter, GroupStatus
from app.errors import NotFound
from app.storage.cursor import Page, decode, encode, number_of
from app.storage.database import lock
from app.storage.tables import FingerprintRow, GroupRow, IncidentRow

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def join(session: Session, fingerprint: str, finding: Finding, seen: datetime) -> int:
    """Counts one more incident to the group of a fingerprint, which is made where there is none -> its number."""
    _lock(session, fingerprint)
    known = select(FingerprintRow.group_number).where(FingerprintRow.fingerprint == fingerprint)
    number = session.execute(known).scalar_one_or_none()
    if number is None:
        return _new(session, fingerprint, finding, seen)
    latest = seen >= GroupRow.last_seen
    changes = {
        "count": GroupRow.count + 1,
        "first_seen": case((seen < GroupRow.first_seen, seen), else_=GroupRow.first_seen),
        "last_seen": case((latest, seen), else_=GroupRow.last_seen),
        "title": case((latest, finding.title), else_=GroupRow.title),
        "signature": case((latest, finding.signature), else_=GroupRow.signature),
        "entry": case((latest, finding.entry), else_=GroupRow.entry),
        "outcome": case((latest, finding.outcome), else_=GroupRow.outcome),
    }
    session.execute(
        update(GroupRow).where(GroupRow.number == number).values(changes),
        execution_options={"synchronize_session": False},
    )
    return number


def read(session: Session, group_id: str) -> Group:
    """-> the group with its fingerprints; raises NotFound."""
    row = session.get(GroupRow, number_of(group_id))
    if row is None:
        raise NotFound("there is no such group", group=group_id[:100])
    query = select(FingerprintRow.fingerprint).where(FingerprintRow.group_number == row.number)
    return _group(row, tuple(sorted(session.execute(query).scalars())))


def listed(session: Session, wanted: GroupFilter, limit: int, cursor: str | None) -> Page[Group]:
    """-> groups that fit, the latest seen first; their fingerprints are left out. Raises BadCursor."""
    equal = {GroupRow.status: wanted.status, GroupRow.entry: wanted.entry, GroupRow.outcome: wanted.outcome}
    conditions: list[ColumnElement[bool]] = [known == value for known, value in equal.items() if value is not None]
    if cursor is not None:
        microseconds, number = decode(cursor, 2)
        seen = _EPOCH + timedelta(microseconds=microseconds)
        conditions.append(or_(GroupRow.last_seen < seen, and_(GroupRow.last_seen == seen, GroupRow.number < number)))
    order = (GroupRow.last_seen.desc(), GroupRow.number.desc())
    rows = session.execute(select(GroupRow).where(*conditions).order_by(*order).limit(limit + 1)).scalars().all()
    more = _place(rows[limit - 1]) if len(rows) > limit else None
    return Page(tuple(_group(row) for row in rows[:limit]), more)


def set_status(session: Session, group_id: str, status: GroupStatus) -> Group:
    """-> the group as it is now; raises NotFound."""
    group = read(session, group_id)
    row = session.get_one(GroupRow, int(group.id))
    row.status = status
    session.flush()
    return _group(row, group.fingerprints)


def recount(session: Session, number: int) -> None:
    """Sets a group's count and times after incidents left it.

    An empty group is taken away, unless somebody decided something about it: that holds for what comes later.
    """
    query = select(FingerprintRow.fingerprint).where(FingerprintRow.group_number == number)
    fingerprints = sorted(session.execute(query).scalars())
    for fingerprint in fingerprints:
        _lock(session, fingerprint)
    left = select(func.count(), func.min(IncidentRow.received_at), func.max(IncidentRow.received_at))
    count, first, last = session.execute(left.where(IncidentRow.group_number == number)).one()
    row = session.get(GroupRow, number, with_for_update=True)
    if row is None:
        return
    row.count = count
    if count:
        row.first_seen, row.last_seen = first, last
    session.flush()
    if not count and row.status == GroupStatus.OPEN and len(fingerprints) == 1:
        session.execute(delete(FingerprintRow).where(FingerprintRow.group_number == number))
        session.execute(delete(GroupRow).where(GroupRow.number == number))


def _lock(session: Session, fingerprint: str) -> None:
    lock(session, f"fingerprint {fingerprint}")


def _new(session: Session, fingerprint: str, finding: Finding, seen: datetime) -> int:
    row = GroupRow(
        status=GroupStatus.OPEN,
        count=1,
        signature=finding.signature,
        title=finding.title,
        entry=finding.entry,
        outcome=finding.outcome,
        first_seen=seen,
        last_seen=seen,
    )
    session.add(row)
    session.flush()
    session.add(FingerprintRow(fingerprint=fingerprint, group_number=row.number))
    session.flush()
    return row.number


def _place(row: GroupRow) -> str:
    return encode((row.last_seen - _EPOCH) // timedelta(microseconds=1), row.number)


def _group(row: GroupRow, fingerprints: tuple[str, ...] = ()) -> Group:
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
        fingerprints=fingerprints,
    )
