"""Reads, lists and changes groups in the database. Each function is one step of the caller's transaction."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from functools import reduce
from operator import add
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, and_, cast, func, literal, or_, select, tuple_
from sqlalchemy.orm import Session

from torchtriage.domain.group import Group, GroupChange, GroupFilter, GroupOrder, GroupStatus
from torchtriage.errors import NotFound
from torchtriage.storage.pagination import Page, Place, microseconds, moment_at, number_of, piece, place
from torchtriage.storage.stats import day_of
from torchtriage.storage.tables import FingerprintRow, GoneGroupRow, GroupRow, IncidentRow, Moment

_MAX_WORDS = 10  # maximum words of a search
_COST = 10_000  # units of cost per GPU hour; integers give an exact order
_ORDERS: dict[GroupOrder, ColumnElement[Any]] = {
    GroupOrder.SEEN: GroupRow.last_seen.expression,
    GroupOrder.COUNT: GroupRow.count.expression,
    GroupOrder.COST: cast(func.round(func.coalesce(GroupRow.gpu_hours, 0) * _COST), BigInteger),
}


def read(session: Session, group_id: str) -> Group:
    """Returns the group with its fingerprints. Raises NotFound."""
    row = row_of(session, group_id)
    fingerprints = select(FingerprintRow.fingerprint).where(FingerprintRow.group_number == row.number)
    merged = select(GroupRow.number).where(GroupRow.merged_into == row.number).order_by(GroupRow.number)
    return _group(
        row,
        tuple(str(number) for number in session.execute(merged).scalars()),
        tuple(sorted(session.execute(fingerprints).scalars())),
    )


def listed(session: Session, wanted: GroupFilter, limit: int, cursor: str | None) -> Page[Group]:
    """Returns a page of matching groups in the order of `wanted.sort`, without merged ones. Raises BadCursor."""
    at = place(cursor, 2)
    by = _ORDERS[wanted.sort]
    order = (by, GroupRow.number)
    query = select(GroupRow).where(*_conditions(wanted)).limit(limit + 1)
    query = query.order_by(*order) if at and at.back else query.order_by(*(column.desc() for column in order))
    if at is not None:
        here = tuple_(_value(wanted.sort, at), literal(at.key[1]))
        query = query.where(tuple_(*order) > here if at.back else tuple_(*order) < here)
    rows = session.execute(query).scalars().all()
    page = piece(rows, limit, at, lambda row: (_key(wanted.sort, row), row.number))
    return Page(tuple(map(_group, page.items)), page.next, page.previous)


def by_status(session: Session, outcome: str) -> dict[GroupStatus, tuple[int, int]]:
    """Returns, for each status, the number of groups with this outcome and the number of their incidents."""
    query = select(GroupRow.status, func.count(), func.sum(GroupRow.count))
    query = query.where(*_conditions(GroupFilter(outcome=outcome))).group_by(GroupRow.status)
    return {GroupStatus(status): (int(groups), int(count)) for status, groups, count in session.execute(query)}


def like(session: Session, group: Group, most: int) -> list[Group]:
    """Returns other groups with the same entry, or with the same outcome and also no entry; latest seen first."""
    same = GroupFilter(entry=group.entry, outcome=None if group.entry else group.outcome)
    query = select(GroupRow).where(*_conditions(same), GroupRow.number != number_of(group.id))
    return [_group(row) for row in session.execute(query.order_by(GroupRow.last_seen.desc()).limit(most)).scalars()]


def trends(session: Session, group_ids: list[str], since: datetime) -> dict[str, dict[str, int]]:
    """Returns, for each group, the number of incidents per UTC day (key: `2026-05-01`), without days that have none."""
    day = day_of(session, IncidentRow.received_at)
    numbers = [number_of(group_id) for group_id in group_ids]
    query = select(IncidentRow.group_number, day, func.count()).where(
        IncidentRow.group_number.in_(numbers), IncidentRow.received_at >= since
    )
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for number, at, count in session.execute(query.group_by(IncidentRow.group_number, day)):
        found[str(number)][at] = count
    return found


def latest(session: Session, group_ids: list[str]) -> dict[str, str]:
    """Returns the id of each group's latest incident. Groups without incidents are omitted."""
    newest = select(IncidentRow.number).where(IncidentRow.group_number == GroupRow.number)
    newest = newest.order_by(IncidentRow.received_at.desc(), IncidentRow.number.desc()).limit(1)
    numbers = [number_of(group_id) for group_id in group_ids]
    query = select(GroupRow.number, newest.scalar_subquery()).where(GroupRow.number.in_(numbers))
    return {str(group): str(number) for group, number in session.execute(query) if number is not None}


def change(session: Session, group_id: str, wanted: GroupChange, now: datetime) -> tuple[Group, Group]:
    """Changes a group. Returns it before and after the change. Raises NotFound."""
    row = row_of(session, group_id)
    session.refresh(row, with_for_update=True)
    before = _group(row)
    if wanted.status is not None and wanted.status != row.status:
        row.status = wanted.status
        row.resolved_at = now if wanted.status is GroupStatus.RESOLVED else None
        row.regressed_at = None
    if wanted.owner is not None:
        row.owner = wanted.owner or None
    if wanted.note is not None:
        row.note = wanted.note or None
    if wanted.mute is not None:
        row.muted_until = now + wanted.mute if wanted.mute else None
    session.flush()
    return before, read(session, group_id)


def row_of(session: Session, group_id: str) -> GroupRow:
    """Returns a group's row. For a deleted group, returns the row of the group that has its incidents; for a
    fingerprint, the row of its group. Only for modules of the storage. Raises NotFound."""
    row = session.get(GroupRow, number_of(group_id))
    if row is None:
        row = session.get(GroupRow, _led_to(session, group_id))
    if row is None:
        raise NotFound("no such group", group=group_id[:100])
    return row


def number_now(session: Session, group_id: str) -> int:
    """Returns the number of a group, or of the group that replaced it. Returns 0, which no group has, if it never
    existed."""
    try:
        return row_of(session, group_id).number
    except NotFound:
        return 0


def _led_to(session: Session, group_id: str) -> int:
    if ":" in group_id:
        query = select(FingerprintRow.group_number).where(FingerprintRow.fingerprint == group_id)
    else:
        query = select(GoneGroupRow.group_number).where(GoneGroupRow.number == number_of(group_id))
    return session.execute(query).scalar() or 0


def _conditions(wanted: GroupFilter) -> list[ColumnElement[bool]]:
    equal = {GroupRow.status: wanted.status, GroupRow.entry: wanted.entry, GroupRow.outcome: wanted.outcome}
    conditions: list[ColumnElement[bool]] = [known == value for known, value in equal.items() if value is not None]
    if words := (wanted.words or "").lower().split()[:_MAX_WORDS]:
        parts = (GroupRow.title, GroupRow.signature, GroupRow.entry, GroupRow.owner, GroupRow.note)
        text = func.lower(reduce(add, (func.coalesce(part, "") + " " for part in parts)))
        has_words = and_(*(text.contains(word, autoescape=True) for word in words))
        conditions.append(or_(has_words, GroupRow.entry.in_(wanted.entries)) if wanted.entries else has_words)
    return [*conditions, GroupRow.merged_into.is_(None)]


def _key(order: GroupOrder, row: GroupRow) -> int:
    match order:
        case GroupOrder.SEEN:
            return microseconds(row.last_seen)
        case GroupOrder.COUNT:
            return row.count
        case GroupOrder.COST:
            return round((row.gpu_hours or 0) * _COST)


def _value(order: GroupOrder, at: Place) -> ColumnElement[Any]:
    return literal(moment_at(at.key[0]), Moment()) if order is GroupOrder.SEEN else literal(at.key[0])


def _group(
    row: GroupRow,
    merged: tuple[str, ...] = (),
    fingerprints: tuple[str, ...] = (),
) -> Group:
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
        muted_until=row.muted_until,
        gpu_hours_lost=row.gpu_hours,
        merged_into=str(row.merged_into) if row.merged_into else None,
        merged=merged,
        fingerprints=fingerprints,
        came_from=str(row.came_from) if row.came_from else None,
        provisional=row.provisional,
    )
