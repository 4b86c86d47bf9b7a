from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtriage.storage import periods

DAYS = st.dates(date(1970, 1, 1), date(2100, 12, 31))


@given(DAYS, st.integers(0, 1200))
def test_the_periods_cover_exactly_the_days(first: date, more: int) -> None:
    last = first + timedelta(days=more)
    found: list[date] = []
    for period in periods.covering_periods(first, last):
        if period > periods.FIRST_DAY:
            found.append(periods.day_of(period))
        else:
            day = date(period // 100, period % 100, 1)
            while periods.month_period(day) == period:
                found.append(day)
                day += timedelta(days=1)
    assert found == [first + timedelta(days=at) for at in range(more + 1)]


@given(DAYS)
def test_a_number_is_a_day_or_a_month(day: date) -> None:
    assert periods.day_of(periods.day_period(day)) == day
    assert periods.period_name(periods.day_period(day)) == day.isoformat()
    assert periods.period_name(periods.month_period(day)) == day.isoformat()[:7]
    assert (
        periods.month_of(periods.day_period(day))
        == periods.month_period(day)
        == periods.month_of(periods.month_period(day))
    )


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (date(2026, 5, 1), date(2026, 5, 31), [202605]),
        (date(2026, 1, 31), date(2026, 3, 1), [20260131, 202602, 20260301]),
        (date(2026, 5, 2), date(2026, 5, 3), [20260502, 20260503]),
        (date(2026, 5, 2), date(2026, 5, 1), []),
    ],
)
def test_whole_months_are_one_period(first: date, last: date, expected: list[int]) -> None:
    assert periods.covering_periods(first, last) == expected
