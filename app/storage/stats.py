"""Counts over time. Each function is one step of a transaction that its caller opened."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.domain.stats import Bucket, Stat, StatsFilter
from app.storage.tables import DailyCountRow, IncidentRow

BY = {
    "entry": IncidentRow.entry,
    "cluster": IncidentRow.cluster,
    "host": IncidentRow.host,
    "outcome": IncidentRow.outcome,
    "user": IncidentRow.user,
}
_KEPT = {"entry": DailyCountRow.entry, "cluster": DailyCountRow.cluster, "outcome": DailyCountRow.outcome}
_SQLITE_FORMATS = {"hour": "%Y-%m-%dT%H:00:00Z", "day": "%Y-%m-%dT00:00:00Z"}
_POSTGRES_FORMAT = 'YYYY-MM-DD"T"HH24:MI:SS"Z"'
_DAY = timedelta(days=1)
_Key = tuple[str, str | None]


def counted(session: Session, wanted: StatsFilter, by: str, bucket: Bucket) -> list[Stat]:
    """-> how many incidents were received, and what they cost, for each time and value of `by`; the oldest first.

    Whole days come from the counts that are kept, where those tell `by`; only what is left of the days at both ends,
    and what has no verdict, is counted here.
    """
    found: dict[_Key, tuple[int, float | None]] = {}
    first, end = _whole_days(wanted)
    if bucket == "day" and by in _KEPT and (first is None or end is None or first < end):
        _join(found, _kept(session, wanted, by, first, end))
        since, until = _start(first), _start(end)
        _join(
            found, _raw(session, StatsFilter(since, until, wanted.cluster), by, bucket, IncidentRow.outcome.is_(None))
        )
        for start, stop in ((wanted.since, since), (until, wanted.until)):
            if start is not None and stop is not None and start < stop:
                _join(found, _raw(session, StatsFilter(start, stop, wanted.cluster), by, bucket))
    else:
        _join(found, _raw(session, wanted, by, bucket))
    order = sorted(found.items(), key=lambda item: (item[0][0], -item[1][0], item[0][1] or ""))
    return [Stat(at, value, count, hours) for (at, value), (count, hours) in order]


def conditions(wanted: StatsFilter) -> list[ColumnElement[bool]]:
    """-> what the incidents of a filter have in common, `host` aside."""
    found: list[ColumnElement[bool]] = []
    if wanted.since is not None:
        found.append(IncidentRow.received_at >= wanted.since)
    if wanted.until is not None:
        found.append(IncidentRow.received_at < wanted.until)
    if wanted.cluster is not None:
        found.append(IncidentRow.cluster == wanted.cluster)
    return found


def day_of(session: Session, moment: InstrumentedAttribute[datetime]) -> ColumnElement[str]:
    """-> the day of a moment in UTC, as `2026-05-01`."""
    if session.get_bind().dialect.name == "sqlite":
        return func.substr(moment, 1, 10)  # as it is stored
    return func.to_char(func.timezone("UTC", moment), "YYYY-MM-DD")


def _kept(session: Session, wanted: StatsFilter, by: str, first: str | None, end: str | None) -> list[Any]:
    value = func.nullif(_KEPT[by], "")
    query = select(DailyCountRow.day + "T00:00:00Z", value, func.sum(DailyCountRow.count), _hours())
    if first is not None:
        query = query.where(DailyCountRow.day >= first)
    if end is not None:
        query = query.where(DailyCountRow.day < end)
    if wanted.cluster is not None:
        query = query.where(DailyCountRow.cluster == wanted.cluster)
    return list(session.execute(query.group_by(DailyCountRow.day, value)))


def _hours() -> ColumnElement[float]:
    return func.nullif(func.sum(DailyCountRow.gpu_hours), 0)


def _raw(session: Session, wanted: StatsFilter, by: str, bucket: Bucket, *more: ColumnElement[bool]) -> list[Any]:
    at = _time(session, bucket)
    query = select(at, BY[by], func.count(), func.sum(IncidentRow.gpu_hours)).where(*conditions(wanted), *more)
    return list(session.execute(query.group_by(at, BY[by])))


def _join(found: dict[_Key, tuple[int, float | None]], rows: list[Any]) -> None:
    for at, value, count, hours in rows:
        before, cost = found.get((at, value), (0, None))
        both = None if hours is None and cost is None else round((hours or 0) + (cost or 0), 4)
        found[at, value] = (before + int(count), both)


def _whole_days(wanted: StatsFilter) -> tuple[str | None, str | None]:
    """-> the first day that the filter takes in whole, and the first after it that it does not."""
    first = end = None
    if wanted.since is not None:
        day = wanted.since.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        first = (day if day == wanted.since else day + _DAY).date().isoformat()
    if wanted.until is not None:
        end = wanted.until.astimezone(UTC).date().isoformat()
    return first, end


def _start(day: str | None) -> datetime | None:
    return None if day is None else datetime.fromisoformat(day).replace(tzinfo=UTC)


def _time(session: Session, bucket: Bucket) -> ColumnElement[str]:
    if session.get_bind().dialect.name == "sqlite":
        return func.strftime(_SQLITE_FORMATS[bucket], IncidentRow.received_at)
    start = func.date_trunc(bucket, func.timezone("UTC", IncidentRow.received_at))
    return func.to_char(start, _POSTGRES_FORMAT)
