from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from tests.storage import values
from torchtriage.storage.database import Database
from torchtriage.storage.periods import SplitTime, midnight, split_time

MAY = [midnight(date(2026, 5, day)) for day in range(1, 9)]
NOON = timedelta(hours=12)
LONG_AGO, FAR_AWAY = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        (None, None, SplitTime((date(2026, 5, 1), date(2026, 5, 5)))),
        (MAY[1], MAY[3], SplitTime((date(2026, 5, 2), date(2026, 5, 3)))),
        (MAY[1] + NOON, None, SplitTime((date(2026, 5, 3), date(2026, 5, 5)), ((MAY[1] + NOON, MAY[2]),))),
        (None, MAY[2] + NOON, SplitTime((date(2026, 5, 1), date(2026, 5, 2)), ((MAY[2], MAY[2] + NOON),))),
        (MAY[1] + NOON, MAY[2] + NOON, SplitTime(None, ((MAY[1] + NOON, MAY[2] + NOON),))),
        (MAY[1] + NOON, MAY[1] + 1.5 * NOON, SplitTime(None, ((MAY[1] + NOON, MAY[1] + 1.5 * NOON),))),
        (MAY[6], None, SplitTime(None)),
        (None, LONG_AGO, SplitTime(None)),
        (LONG_AGO, FAR_AWAY, SplitTime((date(2026, 5, 1), date(2026, 5, 5)), ((midnight(date.max), FAR_AWAY),))),
        (FAR_AWAY, None, SplitTime(None)),
    ],
)
def test_a_time_is_split_into_whole_days_and_the_rest(
    database: Database, since: datetime | None, until: datetime | None, expected: SplitTime
) -> None:
    with database.transaction() as session:
        assert split_time(session, since, until) == SplitTime(None)
        values.triaged(session, "first", 0)
        values.triaged(session, "last", 4 * 86_400)
        assert split_time(session, since, until) == expected
