"""Hosts on which runs failed first, counted from an index alone. Each function is one step of a transaction."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Text, case, cast, func, literal, select, text
from sqlalchemy.orm import Session, aliased

from app.domain.stats import BadHost, HostRecord, StatsFilter
from app.storage.stats import conditions
from app.storage.tables import IncidentRow

_HARDWARE = func.sum(case((IncidentRow.hardware.is_(True), 1), else_=0))


def hosts(session: Session, wanted: StatsFilter, limit: int) -> list[HostRecord]:
    """-> hosts on which runs failed first: those with the most hardware failures, then the most failures, first."""
    names = _names(wanted.host or "")
    host = names.c.host
    query = select(host, func.count(), _HARDWARE).join(IncidentRow, IncidentRow.host == host).where(*_failed(wanted))
    query = query.group_by(host).order_by(_HARDWARE.desc(), func.count().desc(), host).limit(limit)
    return _records(session, wanted, [name for name, *_ in session.execute(query)])


def host(session: Session, wanted: StatsFilter, name: str) -> HostRecord | None:
    """-> one host; None where nothing failed on it."""
    found = _records(session, wanted, [name])
    return found[0] if found else None


def bad(session: Session, wanted: StatsFilter, most: int) -> list[BadHost]:
    """-> hosts that were to blame themselves, those that were it most often first."""
    # As no column, so that SQLite takes the small index of hardware's failures and not the one in the hosts' order.
    host = func.coalesce(IncidentRow.host, "").label("host")
    query = select(host, func.count(), func.max(IncidentRow.received_at)).where(*conditions(wanted), text("hardware"))
    query = query.group_by(host).order_by(func.count().desc(), host).limit(most + 1)
    return [BadHost(name, count, last) for name, count, last in session.execute(query) if name][:most]


def _names(prefix: str) -> Any:
    """-> all names that begin with `prefix`, each found by one step in the index: there are far more incidents."""
    incident = aliased(IncidentRow)
    first = select(func.min(incident.host).label("host")).where(*_within(incident.host, prefix))
    names = first.cte("names", recursive=True)
    later = aliased(IncidentRow)
    after = select(func.min(later.host)).where(later.host > names.c.host, *_within(later.host, prefix))
    return names.union_all(select(after.scalar_subquery()).where(names.c.host.is_not(None)))


def _within(name: Any, prefix: str) -> list[ColumnElement[bool]]:
    """A range and not LIKE, which would not go by the index on every database."""
    return [name >= prefix, func.substr(name, 1, len(prefix)) == prefix] if prefix else []


def _failed(wanted: StatsFilter) -> list[ColumnElement[bool]]:
    return [*conditions(wanted), IncidentRow.outcome != "healthy"]


def _records(session: Session, wanted: StatsFilter, names: list[str]) -> list[HostRecord]:
    columns: tuple[Any, ...] = (
        IncidentRow.host,
        func.count(),
        _HARDWARE,
        func.count(func.distinct(_job())),
        func.min(IncidentRow.received_at),
        func.max(IncidentRow.received_at),
        func.sum(IncidentRow.gpu_hours),
    )
    theirs = IncidentRow.host.in_(names)
    query = select(*columns).where(theirs, *_failed(wanted)).group_by(IncidentRow.host)
    rows: dict[str, Any] = {row[0]: row for row in session.execute(query)}
    entries = _entries(session, wanted, theirs)
    return [replace(HostRecord(*rows[name]), entries=entries[name]) for name in names if name in rows]


def _entries(session: Session, wanted: StatsFilter, theirs: ColumnElement[bool]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = defaultdict(dict)
    columns: tuple[Any, ...] = (IncidentRow.host, IncidentRow.entry, func.count())
    query = select(*columns)
    query = query.where(theirs, *_failed(wanted), IncidentRow.entry.is_not(None))
    query = query.group_by(IncidentRow.host, IncidentRow.entry).order_by(func.count().desc(), IncidentRow.entry)
    for name, entry, count in session.execute(query):
        found[name][entry] = count
    return found


def _job() -> ColumnElement[str]:
    """-> what tells jobs apart: the id that the sender gave, else the incident itself."""
    return func.coalesce(IncidentRow.job_id, literal("#") + cast(IncidentRow.number, Text))
