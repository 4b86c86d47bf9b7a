"""Days and months in UTC as whole numbers, which counts are kept by: 20260501 is a day, 202605 a month.

So all months come before all days, and days or months that follow one another are a range.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

FIRST_DAY = 1_000_000  # every day is above, every month below
_ONE_DAY = timedelta(days=1)


def of_day(day: date) -> int:
    return (day.year * 100 + day.month) * 100 + day.day


def of_month(day: date) -> int:
    return day.year * 100 + day.month


def day_of(period: int) -> date:
    """-> the day that a period above FIRST_DAY is."""
    return date(period // 10_000, period // 100 % 100, period % 100)


def month_of(period: int) -> int:
    """-> the month that a period lies in, or is."""
    return period // 100 if period > FIRST_DAY else period


def named(period: int) -> str:
    """-> 2026-05-01 or 2026-05."""
    return day_of(period).isoformat() if period > FIRST_DAY else f"{period // 100:04}-{period % 100:02}"


def covering(first: date, last: date) -> list[int]:
    """-> the fewest periods that make up the days from the first to the last: whole months, and days at both ends."""
    found: list[int] = []
    day = first
    while day <= last:
        following = _month_after(day)
        if day.day == 1 and following <= last + _ONE_DAY:
            found.append(of_month(day))
            day = following
        else:
            end = min(following, last + _ONE_DAY)
            found += (of_day(at) for at in _days(day, end))
            day = end
    return found


def _days(first: date, end: date) -> Iterator[date]:
    return (first + timedelta(days=at) for at in range((end - first).days))


def _month_after(day: date) -> date:
    return (day.replace(day=1) + timedelta(days=32)).replace(day=1)
