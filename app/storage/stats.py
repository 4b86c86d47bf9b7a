"""Counts over incidents: of hosts, and over time. Each function is one step of a transaction that its caller opened."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from sqlalchemy import ColumnElement, Select, Text, case, cast, func, literal, select
from sqlalchemy.orm import Session

from app.domain.stats import Bucket, HostRecord, Stat, StatsFilter
from app.storage.tables import IncidentRow

BY = {
    "entry": IncidentRow.entry,
    "cluster": IncidentRow.cluster,
    "host": IncidentRow.host,
    "outcome": IncidentRow.outcome,
    "user": IncidentRow.user,
}
_SQLITE_FORMATS = {"hour": "%Y-%m-%dT%H:00:00Z", "day": "%Y-%m-%dT00:00:00Z"}
_POSTGRES_FORMAT = 'YYYY-MM-DD"T"HH24:MI:SS"Z"'


def counted(session: Session, wanted: StatsFilter, by: str, bucket: Bucket) -> list[Stat]:
    """-> how many incidents were received, and what they cost, for each time and value of `by`; the oldest first."""
    at = _time(session, bucket)
    query = select(at, BY[by], func.count(), func.sum(IncidentRow.gpu_hours)).where(*_conditions(wanted))
    query = query.group_by(at, BY[by]).order_by(at, func.count().desc(), BY[by])
    return [Stat(at, value, count, hours) for at, value, count, hours in session.execute(query)]


def hosts(session: Session, wanted: StatsFilter, limit: int) -> list[HostRecord]:
    """-> hosts on which runs failed first: those with the most hardware failures, then the most failures, first."""
    hardware = func.sum(case((IncidentRow.hardware.is_(True), 1), else_=0))
    columns = (
        IncidentRow.host,
        func.count(),
        hardware,
        func.count(func.distinct(_job())),
        func.min(IncidentRow.received_at),
        func.max(IncidentRow.received_at),
        func.sum(IncidentRow.gpu_hours),
    )
    query = _failed(select(*columns), wanted).group_by(IncidentRow.host)
    query = query.order_by(hardware.desc(), func.count().desc(), IncidentRow.host).limit(limit)
    rows = session.execute(query).all()
    entries = _entries(session, wanted, [row[0] for row in rows])
    return [
        HostRecord(host, count, bad, jobs, first, last, hours, entries[host])
        for host, count, bad, jobs, first, last, hours in rows
    ]


def _entries(session: Session, wanted: StatsFilter, names: list[str]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = defaultdict(dict)
    query = _failed(select(IncidentRow.host, IncidentRow.entry, func.count()), wanted)
    query = query.where(IncidentRow.host.in_(names), IncidentRow.entry.is_not(None))
    query = query.group_by(IncidentRow.host, IncidentRow.entry).order_by(func.count().desc(), IncidentRow.entry)
    for host, entry, count in session.execute(query):
        found[host][entry] = count
    return found


def _failed(query: Select[*tuple[Any, ...]], wanted: StatsFilter) -> Select[*tuple[Any, ...]]:
    return query.where(*_conditions(wanted), IncidentRow.host.is_not(None), IncidentRow.outcome != "healthy")


def _conditions(wanted: StatsFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.since is not None:
        found.append(IncidentRow.received_at >= wanted.since)
    if wanted.until is not None:
        found.append(IncidentRow.received_at < wanted.until)
    if wanted.cluster is not None:
        found.append(IncidentRow.cluster == wanted.cluster)
    return found


def _job() -> ColumnElement[str]:
    """-> what tells jobs apart: the id that the sender gave, else the incident itself."""
    given = IncidentRow.job["job_id"].as_string()
    return func.coalesce(given, literal("#") + cast(IncidentRow.number, Text))


def _time(session: Session, bucket: Bucket) -> ColumnElement[str]:
    if session.get_bind().dialect.name == "sqlite":
        return func.strftime(_SQLITE_FORMATS[bucket], IncidentRow.received_at)
    start = func.date_trunc(bucket, func.timezone("UTC", IncidentRow.received_at))
    return func.to_char(start, _POSTGRES_FORMAT)
