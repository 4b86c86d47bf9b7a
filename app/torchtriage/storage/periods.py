"""Days and months in UTC as integers, the keys of counts: 20260501 is a day, 202605 a month.

So all months sort before all days, and consecutive days or months are a range. A period of time is split into whole
days, which have counts, and the remaining parts of days.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from torchtriage.storage.tables import CountRow

_DAY = timedelta(days=1)
_FIRST = date.min + _DAY
_Piece = tuple[datetime | None, datetime | None]

FIRST_DAY = 1_000_000  # every day is above this, every month below


def day_period(day: date) -> int:
    return (day.year * 100 + day.month) * 100 + day.day


def month_period(day: date) -> int:
    return day.year * 100 + day.month


def day_of(period: int) -> date:
    """Returns the day of a period above FIRST_DAY."""
    return date(period // 10_000, period // 100 % 100, period % 100)


def month_of(period: int) -> int:
    """Returns the month of a period, which is a day or a month."""
    return period // 100 if period > FIRST_DAY else period


def period_name(period: int) -> str:
    """Returns the name of a period: 2026-05-01 or 2026-05."""
    return day_of(period).isoformat() if period > FIRST_DAY else f"{period // 100:04}-{period % 100:02}"


def covering_periods(first: date, last: date) -> list[int]:
    """Returns the fewest periods that cover the days from `first` to `last`: whole months, and single days at both
    ends."""
    found: list[int] = []
    day = first
    while day <= last:
        following = _month_after(day)
        if day.day == 1 and following <= last + _DAY:
            found.append(month_period(day))
            day = following
        else:
            end = min(following, last + _DAY)
            found += (day_period(at) for at in _days(day, end))
            day = end
    return found


def _days(first: date, end: date) -> Iterator[date]:
    return (first + timedelta(days=at) for at in range((end - first).days))


def _month_after(day: date) -> date:
    return (day.replace(day=1) + timedelta(days=32)).replace(day=1)


@dataclass(frozen=True, slots=True)
class SplitTime:
    """`days` are the first and the last whole day, or None. `pieces` are the remaining parts, at most two."""

    days: tuple[date, date] | None
    pieces: tuple[_Piece, ...] = ()

    @property
    def periods(self) -> list[int]:
        """The whole days, as keys of counts."""
        return covering_periods(*self.days) if self.days else []


def split_time(session: Session, since: datetime | None, until: datetime | None) -> SplitTime:
    """Returns the parts of a time that have verdicts."""
    first, last = _days_known(session)
    if first is None or last is None:
        return SplitTime(None)
    begin, end = _whole_days(since, until)
    if begin is not None and end is not None and begin >= end:
        return SplitTime(None, ((since, until),))
    pieces: list[_Piece] = []
    if since is not None and begin is not None and since < midnight(begin):
        pieces.append((since, midnight(begin)))
    if until is not None and end is not None and midnight(end) < until:
        pieces.append((midnight(end), until))
    day = max(begin or date.min, day_of(first))
    stop = day_of(last)
    if end is not None and end <= stop:
        stop = max(end, _FIRST) - _DAY
    return SplitTime((day, stop) if day <= stop else None, tuple(pieces))


def _days_known(session: Session) -> tuple[int | None, int | None]:
    first, last = (  # one query each, because SQLite answers it with one index lookup
        session.execute(select(end(CountRow.period)).where(CountRow.period > FIRST_DAY)).scalar()
        for end in (func.min, func.max)
    )
    return first, last


def midnight(day: date) -> datetime:
    """Returns the time at which a day begins in UTC."""
    return datetime.combine(day, time(), UTC)


def _whole_days(since: datetime | None, until: datetime | None) -> tuple[date | None, date | None]:
    """Returns the first day that is completely in this time, and the first day after it that is not."""
    begin = None
    if since is not None:
        begin = since.astimezone(UTC).date()
        if midnight(begin) < since and begin < date.max:
            begin += _DAY
    return begin, until.astimezone(UTC).date() if until is not None else None
