from __future__ import annotations

from datetime import timedelta

import pytest

from tests.storage import values
from torchtriage.domain.stats import StatsFilter
from torchtriage.storage import hosts
from torchtriage.storage.database import Database


def fill(database: Database) -> None:
    plan = [("gpu-1", True, "a"), ("gpu-1", True, "a"), ("gpu-2", False, "b"), ("gpu-2", False, "c"),
            ("gpu-2", False, None), ("login_1", False, "d"), ("gpu%3", False, "e")]  # fmt: skip
    with database.transaction() as session:
        for at, (host, hardware, job) in enumerate(plan):
            finding = values.summary(f"v1:{host}", host=host, hardware=hardware, gpu_hours=1.0)
            values.triaged(session, str(at), at * 100, finding, job_id=job, cluster="blue" if at < 4 else "green")
        values.triaged(session, "healthy", 0, values.summary(None, outcome="healthy", host="gpu-9", entry=None))


def test_hosts_with_hardware_failures_come_first(database: Database) -> None:
    fill(database)
    with database.reading() as session:
        found = hosts.hosts(session, StatsFilter(), 10)
        told = [(one.host, one.hardware, one.count, one.jobs) for one in found]
        assert told[:2] == [("gpu-1", 2, 2, 1), ("gpu-2", 0, 3, 3)]
        assert {host for host, *_ in told[2:]} == {"gpu%3", "login_1"}  # in the database's own order of letters
        assert found[1].entries == {"cuda.oom": 3}
        assert found[1].gpu_hours_lost == 3.0
        assert [one.host for one in hosts.hosts(session, StatsFilter(), 1)] == ["gpu-1"]


def test_causes_and_jobs_are_those_of_the_latest_failures(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "LATEST", 2)
    with database.transaction() as session:
        for at, (entry, job) in enumerate([("xid.79", "a"), ("cuda.oom", "b"), ("cuda.oom", None)]):
            finding = values.summary(f"v1:{entry}", host="gpu-1", entry=entry, gpu_hours=0.5)
            values.triaged(session, str(at), at * 86_400, finding, job_id=job)
    with database.reading() as session:
        (found,) = hosts.hosts(session, StatsFilter(), 9)
        assert (found.count, found.looked_at, found.jobs, found.entries) == (3, 2, 2, {"cuda.oom": 2})
        assert (found.first_seen, found.gpu_hours_lost) == (values.START, 1.5)
        one = hosts.host(session, StatsFilter(), "gpu-1")
        assert one is not None
        assert (one.looked_at, one.jobs, one.entries) == (3, 3, {"cuda.oom": 2, "xid.79": 1})
        day = values.START.date()
        told = hosts.by_day(session, "gpu-1", day, day + timedelta(days=1))
        assert sorted(told) == [day.isoformat(), (day + timedelta(days=1)).isoformat()]
        assert [count for count, _ in told.values()] == [1, 1]
        assert hosts.by_day(session, "gpu-2", day, day) == {}


def test_hosts_are_filtered_by_time_cluster_and_prefix(database: Database) -> None:
    fill(database)
    later = values.START + timedelta(seconds=250)
    with database.reading() as session:
        assert [one.count for one in hosts.hosts(session, StatsFilter(cluster="blue", host="gpu-2"), 9)] == [2]
        assert {one.host for one in hosts.hosts(session, StatsFilter(since=later), 9)} == {"gpu-2", "login_1", "gpu%3"}
        assert {one.host for one in hosts.hosts(session, StatsFilter(until=later), 9)} == {"gpu-1", "gpu-2"}
        assert {one.host for one in hosts.hosts(session, StatsFilter(host="gpu%"), 9)} == {"gpu%3"}
        assert {one.host for one in hosts.hosts(session, StatsFilter(host="gpu"), 9)} == {"gpu-1", "gpu-2", "gpu%3"}
        assert hosts.hosts(session, StatsFilter(host="nowhere"), 9) == []
        one = hosts.host(session, StatsFilter(), "gpu-1")
        assert one is not None
        assert one.last_seen == values.START + timedelta(seconds=100)
        assert hosts.host(session, StatsFilter(), "gpu-9") is None
        assert [(bad.host, bad.hardware) for bad in hosts.bad(session, StatsFilter(), 9)] == [("gpu-1", 2)]
        assert hosts.bad(session, StatsFilter(since=later), 9) == []


def test_hosts_that_fail_more_than_others_of_their_cluster(database: Database) -> None:
    plan = [("gpu-1", "blue")] * 5 + [("gpu-2", "blue"), ("gpu-3", "blue")] + [("gpu-1", "green")] * 4
    with database.transaction() as session:
        for at, (host, cluster) in enumerate(plan):
            finding = values.summary(f"v1:{host}", host=host, hardware=at == 0)
            values.triaged(session, str(at), at, finding, cluster=cluster)
    with database.reading() as session:
        found, compared = hosts.uneven(session, StatsFilter(), 3, 9)
        assert [(one.host, one.cluster, one.count, one.hardware, one.of_cluster, one.hosts) for one in found] == [
            ("gpu-1", "blue", 5, 1, 7, 3)  # in green it is the only one, and as bad as expected
        ]
        assert found[0].expected == pytest.approx(7 / 3)
        assert compared == 4
        assert hosts.uneven(session, StatsFilter(), 6, 9) == ([], 4)
        assert hosts.uneven(session, StatsFilter(cluster="green"), 3, 9) == ([], 1)
        assert hosts.uneven(session, StatsFilter(until=values.START - timedelta(days=2)), 3, 9) == ([], 0)
