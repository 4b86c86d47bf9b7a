"""Old incidents are deleted, but not by a clock that is wrong."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client import generate_latest

from tests.services.logs import kept, upload
from torchtriage.domain.incident import IncidentFilter, Job
from torchtriage.services import incidents, retention
from torchtriage.services.accept import accept
from torchtriage.services.retention import Clock
from torchtriage.services.service import Service

DAY = timedelta(days=1)
NOW = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
def month(service: Service) -> Service:
    """A service that keeps incidents for a month, with one of each of the last 30 days."""
    for days in range(30):
        accept(service, Job(job_id=str(days)), [upload(b"run %d\n" % days)], NOW - days * DAY)
    return replace(service, settings=replace(service.settings, retention_days=30))


def left(service: Service) -> int:
    return len(incidents.list_incidents(service, IncidentFilter()).items)


def test_due_incidents_are_deleted_over_time(month: Service) -> None:
    assert retention.forget_old(month, NOW) == 0
    assert [retention.forget_old(month, NOW + days * DAY + DAY / 2) for days in range(1, 4)] == [1, 1, 1]
    assert retention.forget_old(month, NOW + 8 * DAY + DAY / 2) == 5  # as where it was stopped for some days
    assert left(month) == len(kept(month)) == 22


@pytest.mark.parametrize("days", [12, 31, 400])
def test_a_start_with_a_wrong_clock_deletes_nothing(
    month: Service, days: int, caplog: pytest.LogCaptureFixture
) -> None:
    then = NOW + days * DAY + DAY / 2
    assert retention.forget_old(month, then) == 0
    assert left(month) == len(kept(month)) == 30
    (why,) = month.counters.held_back.values()
    assert why.endswith("of 30 incidents were due more than a day ago; the clock may be wrong")
    assert f"retention deletes nothing: {why}; `torchtriage db forget-old --yes`" in caplog.text
    count = min(days, 30)
    assert f'torchtriage_held_back{{what="incidents"}} {count}.0'.encode() in generate_latest(month.counters.registry)

    assert retention.forget_old(month, NOW + DAY + DAY / 2) == 1  # the clock is right again
    assert month.counters.held_back == {}
    found = retention.due(month, then)
    assert found is not None
    assert retention.forget(month, found) == count - 1  # as the command does it
    assert left(month) == 30 - count


@pytest.mark.parametrize("jump", [400 * DAY, 2 * DAY, -2 * DAY])
def test_a_clock_that_was_set_while_the_service_ran_deletes_nothing(month: Service, jump: timedelta) -> None:
    seconds = {"wall": NOW.timestamp(), "steady": 17.0}
    clock = Clock(lambda: seconds["wall"], lambda: seconds["steady"])
    seconds["wall"] += 86400.5
    seconds["steady"] += 86400
    assert retention.forget_old(month, NOW + DAY + DAY / 2, clock) == 1
    seconds["wall"] += jump.total_seconds()
    assert clock.was_set_by() == jump + timedelta(seconds=0.5)
    assert retention.forget_old(month, NOW + 3 * DAY, clock) == 0
    assert left(month) == 29
    (why,) = month.counters.held_back.values()
    assert why.startswith(f"the system's clock was set by {jump / timedelta(hours=1):+.0f} hours while the service ran")


def test_the_clocks_of_a_system_agree() -> None:
    assert abs(Clock().was_set_by()) < DAY


def test_nothing_is_deleted_without_a_retention_period(service: Service) -> None:
    assert retention.due(service, NOW) is None
