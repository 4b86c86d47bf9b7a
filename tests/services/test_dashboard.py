"""The dashboard beside the time before it, its parts, and hosts that fail unlikely often."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from tests.storage import values
from torchtriage.domain.dashboard import OTHERS, Range
from torchtriage.services.dashboard import dashboard
from torchtriage.services.service import Service

DAY = values.START.date()
DAYS = 86_400


def given(service: Service, entry: str | None, day: int, host: str | None = None, hours: float = 1.0) -> None:
    outcome = "explained" if entry else "unexplained"
    found = values.summary(f"v1:{entry}", entry=entry, outcome=outcome, host=host, gpu_hours=hours)
    with service.database.transaction() as session:
        values.triaged(session, f"{entry} {day} {host} {hours}", day * DAYS, found, cluster="blue")


def week(first: int) -> Range:
    return Range(DAY + timedelta(days=first), DAY + timedelta(days=first + 6))


def test_a_range_is_compared_with_the_same_number_of_days_before(service: Service) -> None:
    for day in (0, 1, 9):
        given(service, "cuda.oom", day)
    given(service, "nccl.timeout", 8, hours=2.5)
    told = dashboard(service, week(7))
    assert told.before is not None
    assert told.before.range == week(0)
    assert (told.count, told.before.count) == (2, 2)
    assert (told.gpu_hours_lost, told.before.gpu_hours_lost) == (3.5, 2.0)
    assert told.before.causes == {"cuda.oom": 2}


def test_an_incomplete_earlier_range_is_not_compared(service: Service) -> None:
    given(service, "cuda.oom", 1)
    assert dashboard(service, week(7)).before is None
    assert dashboard(service, Range(date(2020, 1, 1), date(2020, 1, 2))).before is None


def test_others_is_not_the_largest_part(service: Service) -> None:
    areas = ("cuda", "nccl", "data", "env", "usage", "xid", "slurm", "storage", "process", "network", "ddp")
    for at, area in enumerate(areas):
        for number in range(3 if at == 0 else 2):
            given(service, f"{area}.x", 0, hours=number)
    given(service, None, 0)
    chart = dashboard(service, week(0)).by_area
    sums = {part: sum(counts) for part, counts in chart.counts.items()}
    assert sums[OTHERS] <= sums["cuda"] == max(sums.values())
    assert len(chart.rest) == 1
    assert sum(sums.values()) == 24
    assert "unknown" in sums


def test_a_host_that_fails_more_than_chance_explains_is_listed(service: Service) -> None:
    for number in range(12):
        given(service, "cuda.oom", 0, "gpu-07", number)
    for number in range(20):
        given(service, "cuda.oom", 0, f"gpu-{number + 10}")
    told = dashboard(service, week(0))
    assert told.compared == 21
    (one,) = told.unlikely_hosts
    assert (one.failures.host, one.failures.count) == ("gpu-07", 12)
    assert one.failures.expected == pytest.approx(32 / 21)
    assert 0 < one.chance < 1e-5
    assert told.tables()["unlikely_hosts"][1][:4] == ["gpu-07", "blue", 12, 1.52]


def test_hosts_that_fail_equally_often_are_not_listed(service: Service) -> None:
    for number in range(12):
        for _ in range(3):
            given(service, "cuda.oom", 0, f"gpu-{number}", _)
    assert dashboard(service, week(0)).unlikely_hosts == ()
