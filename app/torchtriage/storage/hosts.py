"""Hosts on which runs failed first. Each function is one step of the caller's transaction.

The order of hosts, their number of failures and the cost come from maintained counts, and for partly selected days from
the incidents. The rest (causes and jobs) comes from an index and only for the hosts shown, from their latest failures.
"""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Float,
    RowMapping,
    Select,
    Subquery,
    Text,
    case,
    cast,
    func,
    literal,
    select,
    union_all,
)
from sqlalchemy.orm import Session

from torchtriage.domain.stats import BadHost, HostFailures, HostRecord, StatsFilter
from torchtriage.domain.verdict import FAILED
from torchtriage.storage import daily_counts
from torchtriage.storage.periods import day_period, period_name, split_time
from torchtriage.storage.stats import conditions
from torchtriage.storage.tables import HostCountRow, IncidentRow

LATEST = 100  # latest failures per listed host of which causes and jobs are read
_LATEST_OF_ONE = 2000


def hosts(session: Session, wanted: StatsFilter, limit: int) -> list[HostRecord]:
    """Returns hosts on which runs failed first: most hardware failures first, then most failures."""
    return _records(session, wanted, _ranked(session, wanted, _begins(wanted.host or "")), limit, LATEST)


def host(session: Session, wanted: StatsFilter, name: str) -> HostRecord | None:
    """Returns one host, or None if nothing failed on it."""
    found = _records(session, wanted, _ranked(session, wanted, lambda column: [column == name]), 1, _LATEST_OF_ONE)
    return found[0] if found else None


def by_day(session: Session, name: str, first: date, last: date) -> dict[str, tuple[int, int]]:
    """Returns, for each day (key: `2026-05-01`) with failures on a host, the number of failures and of hardware
    failures."""
    row, periods = HostCountRow, (day_period(first), day_period(last))
    query = select(row.period, func.sum(row.count), func.sum(row.hardware)).group_by(row.period)
    found = session.execute(query.where(row.host == name, row.period.between(*periods)))
    return {period_name(period): (int(count), int(own)) for period, count, own in found}


def bad(session: Session, wanted: StatsFilter, most: int) -> list[BadHost]:
    """Returns hosts with hardware failures, most failures first."""
    ranked = _first(_ranked(session, wanted, lambda _: [], HostCountRow.hardware > 0), most)
    last = _failures(wanted, ranked, IncidentRow.received_at).where(IncidentRow.hardware.is_(True))
    last = last.order_by(IncidentRow.received_at.desc()).limit(1)
    query = select(ranked.c.host, ranked.c.hardware, last.scalar_subquery()).where(ranked.c.hardware > 0)
    return [BadHost(name, int(count), at) for name, count, at in session.execute(query.order_by(*_order(ranked)))]


def uneven(session: Session, wanted: StatsFilter, least: int, most: int) -> tuple[list[HostFailures], int]:
    """Returns hosts that failed at least `least` times and more often than the average of their cluster, greatest
    difference first; and the number of all hosts. The time must be whole days."""
    row = HostCountRow
    periods = split_time(session, wanted.since, wanted.until).periods
    sums = func.sum(row.count).label("failures"), func.sum(row.hardware).label("hardware")
    each = select(row.host, row.cluster, *sums).where(row.period.in_(periods)).group_by(row.cluster, row.host)
    if wanted.cluster is not None:
        each = each.where(row.cluster == wanted.cluster)
    hosts = each.subquery()
    total = func.sum(hosts.c.failures).over(partition_by=hosts.c.cluster).label("total")
    host_count = func.count().over(partition_by=hosts.c.cluster).label("hosts")
    of_all = func.count().over().label("of_all")
    compared = select(hosts, total, host_count, of_all).subquery()
    expected = cast(compared.c.total, Float) / compared.c.hosts
    over = compared.c.failures - expected
    query = select(compared).where(compared.c.failures >= least, over > 0).order_by((over * over / expected).desc())
    rows = session.execute(query.limit(most)).all()
    found = [
        HostFailures(
            one.host, one.cluster or None, int(one.failures), int(one.hardware), int(one.total), int(one.hosts)
        )
        for one in rows
    ]
    if rows:
        return found, int(rows[0].of_all)
    return [], session.execute(select(func.count()).select_from(hosts)).scalar_one()


def _ranked(session: Session, wanted: StatsFilter, named: Any, *counted: ColumnElement[bool]) -> Subquery:
    """Returns host, count, hardware failures and cost. `named` makes conditions from a column of host names; `counted`
    are conditions on the maintained counts."""
    time = split_time(session, wanted.since, wanted.until)
    row = HostCountRow
    kept = select(row.host, row.count, row.hardware, row.cost).where(
        row.period.in_(time.periods), *named(row.host), *counted
    )
    if wanted.cluster is not None:
        kept = kept.where(row.cluster == wanted.cluster)
    cost = cast(func.round(func.coalesce(IncidentRow.gpu_hours, 0) * daily_counts.COST), BigInteger)
    single = (IncidentRow.host, literal(1), case((IncidentRow.hardware.is_(True), 1), else_=0), cost)
    pieces = [
        select(*single).where(*_failed(StatsFilter(since, until, wanted.cluster)), *named(IncidentRow.host))
        for since, until in time.pieces
    ]
    both = union_all(kept, *pieces).subquery()
    sums = [func.sum(both.c[name]).label(name) for name in ("count", "hardware", "cost")]
    return select(both.c.host, *sums).group_by(both.c.host).subquery()


def _first(ranked: Subquery, most: int) -> Subquery:
    return select(ranked).order_by(*_order(ranked)).limit(most).subquery()


def _order(ranked: Subquery) -> tuple[ColumnElement[Any], ...]:
    return ranked.c.hardware.desc(), ranked.c.count.desc(), ranked.c.host


def _begins(prefix: str) -> Any:
    """Uses a range instead of LIKE, because LIKE does not use the index on every database."""
    return lambda name: [name >= prefix, func.substr(name, 1, len(prefix)) == prefix] if prefix else []


def _failed(wanted: StatsFilter) -> list[ColumnElement[bool]]:
    return [*conditions(wanted), IncidentRow.host.is_not(None), IncidentRow.outcome.in_(FAILED)]


def _failures(wanted: StatsFilter, ranked: Subquery, *columns: Any) -> Select[Any]:
    """Selects the failures on the host of a row of `ranked`."""
    return select(*columns).where(IncidentRow.host == ranked.c.host, *_failed(wanted)).correlate(ranked)


def _records(session: Session, wanted: StatsFilter, ranked: Subquery, most: int, latest: int) -> list[HostRecord]:
    shown = _first(ranked, most)
    at, number = IncidentRow.received_at, IncidentRow.number
    first, last = (
        _failures(wanted, shown, at).order_by(order).limit(1).scalar_subquery() for order in (at.asc(), at.desc())
    )
    newest = _failures(wanted, shown, IncidentRow.entry, _job().label("job"))
    newest_of_all = newest.order_by(at.desc(), number.desc()).limit(latest).subquery()
    jobs = select(func.count(func.distinct(newest_of_all.c.job))).scalar_subquery()
    entries = select(func.aggregate_strings(newest_of_all.c.entry, " ")).scalar_subquery()
    named = (jobs.label("jobs"), first.label("first"), last.label("last"), entries.label("entries"))
    query = select(shown, *named).order_by(*_order(shown))
    return [_record(row, latest) for row in session.execute(query).mappings()]


def _record(row: RowMapping, latest: int) -> HostRecord:
    counts = Counter((row["entries"] or "").split())
    count, cost = int(row["count"]), row["cost"]
    return HostRecord(
        row["host"], count, int(row["hardware"]), row["jobs"], row["first"], row["last"],
        int(cost) / daily_counts.COST if cost else None,
        dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))), min(count, latest),
    )  # fmt: skip


def _job() -> ColumnElement[str]:
    """Returns what identifies a job: its id from the sender, or else the incident itself."""
    return func.coalesce(IncidentRow.job_id, literal("#") + cast(IncidentRow.number, Text))
