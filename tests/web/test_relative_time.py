from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from torchtriage.web.pages.relative_time import ago, zoned

NOW = datetime(2026, 5, 10, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("before", "en", "zh"),
    [
        (timedelta(seconds=59), "just now", "刚刚"),
        (timedelta(minutes=4, seconds=59), "4 min ago", "4 分钟前"),
        (timedelta(hours=23), "23 h ago", "23 小时前"),
        (timedelta(days=29), "29 d ago", "29 天前"),
        (timedelta(days=30), "2026-04-10", "2026-04-10"),
        (timedelta(hours=-3), "in 3 h", "3 小时后"),
        (timedelta(days=-90), "2026-08-08", "2026-08-08"),
    ],
)
def test_it_is_worded_as_people_say_it(before: timedelta, en: str, zh: str) -> None:
    assert (ago("en", NOW - before, NOW), ago("zh", NOW - before, NOW)) == (en, zh)


@pytest.mark.parametrize(
    ("time", "known"),
    [
        ("2026-05-01T09:00:00Z", True),
        ("2026-05-01T09:00:00.5+08:00", True),
        ("2026-05-01T09:00:00", False),
        ("--05-01T09:00:00", False),
        (None, False),
    ],
)
def test_a_time_with_a_zone_is_recognized(time: str | None, known: bool) -> None:
    assert zoned(time) is known
