"""Counts over time. Each function is one step of the caller's transaction."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from torchtriage.domain.stats import Bucket, Stat, StatsFilter
from torchtriage.storage import daily_counts, periods
from torchtriage.storage.pagination import BadCursor, Page, decode, encode
from torchtriage.storage.periods import SplitTime, midnight, split_time
from torchtriage.storage.tables import CountRow, IncidentRow

MAX_COUNTED = 5000  # maximum incidents counted for one answer, or counts in it; the last day may exceed it
MAX_SUMMED = 40_000  # maximum counts, if the answer sums them up
BY = {
    "entry": IncidentRow.entry,
    "cluster": IncidentRow.cluster,
    "host": IncidentRow.host,
    "outcome": IncidentRow.outcome,
    "user": IncidentRow.user,
}
_KEPT = {"entry": CountRow.entry, "cluster": CountRow.cluster, "outcome": CountRow.outcome}
_SQLITE_FORMATS = {"hour": "%Y-%m-%dT%H:00:00Z", "day": "%Y-%m-%dT00:00:00Z"}
_POSTGRES_FORMAT = 'YYYY-MM-DD"T"HH24:MI:SS"Z"'
_DAY = timedelta(days=1)
_Found = dict[tuple[str, str | None], tuple[int, float | None]]


def counted(session: Session, wanted: StatsFilter, by: str, bucket: Bucket, cursor: str | None) -> Page[Stat]:
    """Returns the number of incidents received and their GPU hours for each time and value of `by`, oldest first.

    A page has as many whole days as fit. Raises BadCursor.
    """
    if cursor is not None:
        wanted = replace(wanted, since=_beginning(cursor))
    kept = bucket == "day" and by in _KEPT
    end = _end(session, wanted, by, kept)
    shown = replace(wanted, until=end) if end is not None else wanted
    found: _Found = {}
    if kept:
        _by_days(session, found, shown, by)
    else:
        _join(found, _raw(session, shown, by, bucket))
    order = sorted(found.items(), key=lambda item: (item[0][0], -item[1][0], item[0][1] or ""))
    items = tuple(Stat(at, value, count, hours) for (at, value), (count, hours) in order)
    return Page(items, encode(periods.day_period(end.date())) if end is not None else None)


def conditions(wanted: StatsFilter) -> list[ColumnElement[bool]]:
    """Returns the conditions of a filter on incidents, except `host`."""
    found: list[ColumnElement[bool]] = []
    if wanted.since is not None:
        found.append(IncidentRow.received_at >= wanted.since)
    if wanted.until is not None:
        found.append(IncidentRow.received_at < wanted.until)
    if wanted.cluster is not None:
        found.append(IncidentRow.cluster == wanted.cluster)
    return found


def day_of(session: Session, moment: InstrumentedAttribute[datetime]) -> ColumnElement[str]:
    """Returns the UTC day of a time, as `2026-05-01`."""
    if session.get_bind().dialect.name == "sqlite":
        return func.substr(moment, 1, 10)  # the stored text begins with the date
    return func.to_char(func.timezone("UTC", moment), "YYYY-MM-DD")


def _beginning(cursor: str) -> datetime | None:
    try:
        return midnight(periods.day_of(*decode(cursor, 1)))
    except (ValueError, OverflowError):
        raise BadCursor("invalid cursor; start at the first page") from None


def _end(session: Session, wanted: StatsFilter, by: str, kept: bool) -> datetime | None:
    """Returns the end of the last day that fits in the answer, or None if all days fit."""
    first, last = _days_of_counts(session, wanted, by) if kept else _days_of_incidents(session, wanted)
    if first is None or last is None:
        return None
    end = midnight(max(last, first + _DAY))
    return end if wanted.until is None or end < wanted.until else None


def _days_of_counts(session: Session, wanted: StatsFilter, by: str) -> tuple[date | None, date | None]:
    """Returns the first day, and the day of the first count that exceeds the limit."""
    days = split_time(session, wanted.since, wanted.until).days
    if days is None:
        return None, None
    query = select(CountRow.period).where(*_of_days(days, wanted.cluster, by)).order_by(CountRow.period)
    most = MAX_COUNTED if by == "entry" else MAX_SUMMED
    period = session.execute(query.offset(most).limit(1)).scalar()
    return days[0], periods.day_of(period) if period else None


def _days_of_incidents(session: Session, wanted: StatsFilter) -> tuple[date | None, date | None]:
    """Returns the day of the first incident, and the day of the first one that exceeds MAX_COUNTED."""
    at = IncidentRow.received_at
    query = select(at).where(*conditions(wanted)).order_by(at)
    first, last = (session.execute(query.offset(skipped).limit(1)).scalar() for skipped in (0, MAX_COUNTED))
    return first and first.astimezone(UTC).date(), last and last.astimezone(UTC).date()


def _by_days(session: Session, found: _Found, wanted: StatsFilter, by: str) -> None:
    """Takes whole days from the maintained counts. Counts here only the parts of days at both ends, and incidents
    without a verdict."""
    time: SplitTime = split_time(session, wanted.since, wanted.until)
    if time.days is not None:
        _join(found, _kept(session, wanted, by, time.days))
    without = IncidentRow.outcome.is_(None)
    _join(found, _raw(session, wanted, by, "day", without))
    for since, until in time.pieces:
        _join(found, _raw(session, replace(wanted, since=since, until=until), by, "day", ~without))


def _kept(session: Session, wanted: StatsFilter, by: str, days: tuple[date, date]) -> list[Any]:
    value = func.nullif(_KEPT[by], daily_counts.NONE)
    sums = func.sum(CountRow.count), func.sum(CountRow.cost)
    query = select(CountRow.period, value, *sums).where(*_of_days(days, wanted.cluster, by))
    return [
        (f"{periods.period_name(day)}T00:00:00Z", known, count, int(cost) / daily_counts.COST or None)
        for day, known, count, cost in session.execute(query.group_by(CountRow.period, value))
    ]


def _of_days(days: tuple[date, date], cluster: str | None, by: str) -> list[ColumnElement[bool]]:
    every = cluster is None and by != "cluster"
    within = CountRow.period.between(periods.day_period(days[0]), periods.day_period(days[1]))
    return [within, CountRow.every == every, *([CountRow.cluster == cluster] if cluster is not None else [])]


def _raw(session: Session, wanted: StatsFilter, by: str, bucket: Bucket, *more: ColumnElement[bool]) -> list[Any]:
    at = _time(session, bucket)
    query = select(at, BY[by], func.count(), func.sum(IncidentRow.gpu_hours)).where(*conditions(wanted), *more)
    return list(session.execute(query.group_by(at, BY[by])))


def _join(found: _Found, rows: list[Any]) -> None:
    for at, value, count, hours in rows:
        before, cost = found.get((at, value), (0, None))
        both = None if hours is None and cost is None else round((hours or 0) + (cost or 0), 4)
        found[at, value] = (before + int(count), both)


def _time(session: Session, bucket: Bucket) -> ColumnElement[str]:
    if session.get_bind().dialect.name == "sqlite":
        return func.strftime(_SQLITE_FORMATS[bucket], IncidentRow.received_at)
    start = func.date_trunc(bucket, func.timezone("UTC", IncidentRow.received_at))
    return func.to_char(start, _POSTGRES_FORMAT)
