"""Which incidents a list shows: filters, words and a place in, numbers in the list's order out.

A list goes by the time of receipt, the newest first. Every filter has an index in that order, so a page costs what its
rows cost. Words are another index: where few incidents have them those are looked up, where many have them the list
is walked and each incident is asked, until the page is full.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, literal, select, tuple_
from sqlalchemy.orm import Session

from app.domain.incident import IncidentFilter
from app.storage import search
from app.storage.cursor import Page, number_of, piece, place
from app.storage.moments import microseconds, moment_at
from app.storage.tables import IncidentRow, Moment

FEW = 5000  # incidents that words lead to and that are looked up one by one


class Listed(NamedTuple):
    number: int
    received_at: datetime


def listed(session: Session, wanted: IncidentFilter, limit: int, cursor: str | None) -> Page[Listed]:
    """-> incidents that fit, the newest first; raises BadCursor."""
    at = place(cursor, 2)
    query = select(IncidentRow.number, IncidentRow.received_at).where(*conditions(session, wanted)).limit(limit + 1)
    order = (IncidentRow.received_at, IncidentRow.number)
    query = query.order_by(*order) if at and at.back else query.order_by(*(column.desc() for column in order))
    if at is not None:
        here = tuple_(literal(moment_at(at.key[0]), Moment()), literal(at.key[1]))
        query = query.where(tuple_(*order) > here if at.back else tuple_(*order) < here)
    found = [Listed(*row) for row in session.execute(query)]
    return piece(found, limit, at, lambda row: (microseconds(row.received_at), row.number))


def conditions(session: Session, wanted: IncidentFilter) -> list[ColumnElement[bool]]:
    """-> what the incidents of a filter have in common."""
    equal = {
        IncidentRow.entry: wanted.entry,
        IncidentRow.outcome: wanted.outcome,
        IncidentRow.cluster: wanted.cluster,
        IncidentRow.user: wanted.user,
        IncidentRow.host: wanted.host,
        IncidentRow.state: wanted.state,
    }
    found: list[ColumnElement[bool]] = [known == value for known, value in equal.items() if value is not None]
    if wanted.group is not None:
        found.append(IncidentRow.group_number == number_of(wanted.group))
    if wanted.since is not None:
        found.append(IncidentRow.received_at >= wanted.since)
    if wanted.until is not None:
        found.append(IncidentRow.received_at < wanted.until)
    if wanted.q:
        found += _having(session, wanted.q)
    return found


def _having(session: Session, words: str) -> list[ColumnElement[bool]]:
    few = search.some(session, words, FEW + 1)
    if few is None:
        return []
    if len(few) <= FEW:
        return [IncidentRow.number.in_(few)]
    matching = search.matches(session, IncidentRow.number.expression, words)
    return [] if matching is None else [matching]
