from __future__ import annotations

import random
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select, text
from sqlalchemy.orm import Session

from tests.storage import values
from torchtriage.domain.dashboard import Range
from torchtriage.domain.group import GroupFilter
from torchtriage.domain.stats import Bucket, Stat, StatsFilter
from torchtriage.storage import daily_counts, dashboard, group_merging, groups, incidents, stats, verdicts
from torchtriage.storage.database import Database
from torchtriage.storage.group_merging import CannotRegroup
from torchtriage.storage.recount import recount
from torchtriage.storage.tables import CountRow, HostCountRow, IncidentRow

ENTRIES = ("cuda.oom", "nccl.timeout", None)
YEAR = Range(date(2026, 1, 1), date(2026, 12, 31))


def found(dice: random.Random) -> Any:
    entry = dice.choice(ENTRIES)
    outcome = dice.choice(["explained", "healthy"]) if entry else "unexplained"
    fingerprint = f"v1:{dice.randrange(5)}" if outcome != "healthy" else None
    host, hardware = dice.choice(["gpu-1", "gpu-2", None]), dice.random() < 0.3
    hours = dice.choice([None, 0.1, 2.5, 33.3333])
    return values.summary(fingerprint, entry=entry, outcome=outcome, gpu_hours=hours, host=host, hardware=hardware)


def kept(database: Database) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Returns what the rows of counts, and of hosts, say, by their keys."""
    with database.reading() as session:
        rows = session.execute(select(CountRow)).scalars().all()
        by_host = session.execute(select(HostCountRow)).scalars().all()
    return (
        {(row.period, row.every, row.cluster, row.outcome, row.entry): (row.count, row.cost) for row in rows},
        {(row.period, row.host, row.cluster): (row.count, row.hardware, row.cost) for row in by_host},
    )


def true(database: Database) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Returns what they should say, counted from the incidents one by one."""
    verdicts_of: dict[Any, list[int]] = defaultdict(lambda: [0, 0])
    of_hosts: dict[Any, list[int]] = defaultdict(lambda: [0, 0, 0])
    with database.reading() as session:
        for row in session.execute(select(IncidentRow).where(IncidentRow.outcome.is_not(None))).scalars():
            at, cost = row.received_at.astimezone(UTC), round((row.gpu_hours or 0) * 10_000)
            for form in ("%Y%m", "%Y%m%d"):
                for every, cluster in ((False, row.cluster or ""), (True, "")):
                    sums = verdicts_of[int(at.strftime(form)), every, cluster, row.outcome, row.entry or ""]
                    sums[:] = [sums[0] + 1, sums[1] + cost]
                if row.host and row.outcome != "healthy":
                    sums = of_hosts[int(at.strftime(form)), row.host, row.cluster or ""]
                    sums[:] = [sums[0] + 1, sums[1] + bool(row.hardware), sums[2] + cost]
    return {key: tuple(sums) for key, sums in verdicts_of.items()}, {key: tuple(sums) for key, sums in of_hosts.items()}


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_counts_stay_true_while_verdicts_come_change_and_go(database: Database, seed: int) -> None:
    """What people decide about groups in between changes no count, and no count is lost by it."""
    dice = random.Random(seed)
    plan = [(i, found(dice), found(dice)) for i in range(40)]

    def give(step: tuple[int, Any, Any]) -> str:
        number, finding, _ = step
        with database.transaction() as session:
            cluster = dice.choice(["blue", "green", None])
            return values.triaged(session, f"log {number}", number * 30_000, finding, cluster=cluster)

    def change(incident: str, finding: Any) -> None:
        with database.transaction() as session:
            assert verdicts.replace(session, incident, values.verdict(finding.outcome), finding, values.START)

    def remove_group(incident: str) -> None:
        with database.transaction() as session:
            incidents.remove(session, incident)

    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(give, plan))
        list(pool.map(change, made[::2], [finding for *_, finding in plan[::2]]))
        decide(database, dice)
        for incident, (_, finding, _) in zip(made[::5], plan[::5], strict=True):
            change(incident, finding)
        decide(database, dice)
        list(pool.map(remove_group, made[::3]))
    with database.transaction() as session:  # as the retention does
        for incident in incidents.received_before(session, values.START + timedelta(days=3), 99):
            incidents.remove(session, incident)
    assert kept(database) == true(database)
    assert kept(database)[1]


def decide(database: Database, dice: random.Random) -> None:
    """Merges groups, takes merges back, and splits groups, as far as that makes sense."""
    for _ in range(8):
        with database.reading() as session:
            known = groups.listed(session, GroupFilter(), 9, None).items
        one, other = (group.id for group in dice.choices(known, k=2))
        with suppress(CannotRegroup), database.transaction() as session:
            match dice.randrange(3):
                case 0:
                    group_merging.merge(session, one, [other])
                case 1:
                    group_merging.split(session, one, "cluster", "blue")
                case _:
                    group_merging.unmerge(session, one, groups.read(session, one).merged[:1])


def test_counts_of_several_verdicts_change_at_once(database: Database) -> None:
    with database.transaction() as session:
        made = [values.triaged(session, str(i), i, found(random.Random(i))) for i in range(6)]
    with database.transaction() as session:
        rows = [session.get_one(IncidentRow, int(incident)) for incident in made]
        before = [daily_counts.of(row) for row in rows]
        for row in rows[:3]:
            row.entry, row.outcome, row.host = "xid.79", "explained", "gpu-9"
        daily_counts.update_all(session, [(old, daily_counts.of(row)) for old, row in zip(before, rows, strict=True)])
    assert kept(database) == true(database)


def test_recount_gives_the_same_counts(database: Database) -> None:
    dice = random.Random(9)
    with database.transaction() as session:
        for i in range(30):
            values.triaged(session, str(i), i * 90_000, found(dice), cluster=dice.choice(["blue", "green", None]))
    before = kept(database)
    with database.transaction() as session:
        session.execute(text("DELETE FROM counts WHERE every"))
        session.execute(text("UPDATE host_counts SET count = 99"))
        assert recount(session) == 30
    assert kept(database) == before == true(database)


def test_incidents_without_a_verdict_are_not_counted(database: Database) -> None:
    with database.transaction() as session:
        waiting = values.added(session, "waits")
        failed = values.added(session, "failed")
        assert verdicts.save_failure(session, failed, "why", values.START)
        incidents.remove(session, waiting)
    assert kept(database) == ({}, {})


def every_page(session: Session, wanted: StatsFilter, by: str, bucket: Bucket) -> list[Stat]:
    found: list[Stat] = []
    cursor = None
    while True:
        page = stats.counted(session, wanted, by, bucket, cursor)
        found += page.items
        if page.next is None:
            return found
        cursor = page.next


@pytest.mark.parametrize("most", [pytest.param(5, marks=pytest.mark.slow), 10_000])
def test_whole_days_and_parts_of_days_add_up(database: Database, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "MAX_COUNTED", most)
    monkeypatch.setattr(stats, "MAX_SUMMED", most)
    dice = random.Random(1)
    with database.transaction() as session:
        for i in range(80):
            values.triaged(session, str(i), i * 5000, found(dice), cluster=dice.choice(["blue", "green"]))
        values.added(session, "waits", 7000)
    since = values.START + timedelta(hours=3)
    ranges = [(None, None), (since, None), (None, since + timedelta(hours=50)), (since, since + timedelta(hours=50)),
              (since, since + timedelta(hours=4)), (datetime(2026, 5, 2, tzinfo=UTC), datetime(2026, 5, 4, tzinfo=UTC)),
              (datetime(2027, 1, 1, tzinfo=UTC), None)]  # fmt: skip
    with database.reading() as session:
        for start, end in ranges:
            for cluster in (None, "blue"):
                wanted = StatsFilter(start, end, cluster)
                for by in ("entry", "outcome", "cluster"):
                    by_day = every_page(session, wanted, by, "day")
                    by_hour: Counter[tuple[str, str | None]] = Counter()
                    for stat in every_page(session, wanted, by, "hour"):
                        by_hour[stat.at[:10], stat.value] += stat.count
                    assert {(stat.at[:10], stat.value): stat.count for stat in by_day} == dict(by_hour)


def test_failures_over_time_and_totals_by_cluster(database: Database) -> None:
    with database.transaction() as session:
        values.triaged(session, "a", 0, values.summary("v1:a", gpu_hours=1.5), cluster="blue")
        values.triaged(session, "b", 86_400, values.summary("v1:a", gpu_hours=2.0), cluster="blue")
        values.triaged(session, "c", 86_400 * 40, values.summary("v1:b", entry=None, outcome="unexplained"))
        values.triaged(session, "d", 0, values.summary(None, entry=None, outcome="healthy"), cluster="green")
    with database.reading() as session:
        days = dashboard.over_time(session, YEAR, None, "day")
        assert days == {"cuda.oom": {"2026-05-01": 1, "2026-05-02": 1}, None: {"2026-06-10": 1}}
        assert dashboard.over_time(session, YEAR, None, "month") == {"cuda.oom": {"2026-05": 2}, None: {"2026-06": 1}}
        assert dashboard.over_time(session, YEAR, "blue", "month") == {"cuda.oom": {"2026-05": 2}}
        part = Range(date(2026, 5, 2), date(2026, 6, 9))
        assert dashboard.over_time(session, part, None, "month") == {"cuda.oom": {"2026-05": 1}}
        totals = {(one.part, one.outcome): one for one in dashboard.by_cluster(session, YEAR, None)}
        assert totals["blue", "explained"].gpu_hours == 3.5
        assert {key: one.count for key, one in totals.items()} == {
            ("blue", "explained"): 2, ("", "unexplained"): 1, ("green", "healthy"): 1,
        }  # fmt: skip
        assert {one.part for one in dashboard.by_cluster(session, YEAR, "blue")} == {"blue"}
        assert dashboard.first_day(session) == date(2026, 5, 1)
        assert dashboard.clusters(session) == ["blue", "green"]
        assert dashboard.over_time(session, Range(date(2027, 1, 1), date(2027, 1, 2)), None, "day") == {}
        assert daily_counts.of_entry(session, "cuda.oom", date(2026, 5, 2)) == (2, {"2026-05-02": 1})


def test_the_results_of_advised_retries_are_counted(database: Database) -> None:
    def attempt(
        job: str, number: int | None, at: int, entry: str | None, advice: str, cluster: str | None = "blue"
    ) -> None:
        healthy = entry is None
        finding = values.summary(
            None if healthy else f"v1:{entry}", entry=entry, outcome="healthy" if healthy else "explained"
        )
        with database.transaction() as session:
            incident = values.added(session, f"{job} {number} {at}", at, job_id=job, attempt=number, cluster=cluster)
            assert values.save(session, incident, values.verdict(advice=advice), finding)

    attempt("same", 0, 0, "nccl.timeout", "retry")
    attempt("same", 1, 10, "nccl.timeout", "fix-first")
    attempt("other", 0, 20, "nccl.timeout", "retry-elsewhere")
    attempt("other", 2, 40, "cuda.oom", "fix-first")
    attempt("well", None, 50, "nccl.timeout", "retry")
    attempt("well", None, 60, None, "none")
    attempt("nowhere", 0, 50, "nccl.timeout", "retry", None)
    attempt("nowhere", 1, 55, None, "none", None)
    attempt("silent", 3, 70, "nccl.timeout", "retry")
    attempt("silent", 2, 80, "nccl.timeout", "none")  # an earlier attempt, told later
    attempt("same", 5, 90, None, "none", "green")  # another cluster's job of the same id
    with database.reading() as session:
        came = dashboard.retry_success(session, StatsFilter(), 100)
        assert (came.looked_at, came.same, came.other, came.healthy, came.unknown) == (5, 1, 1, 2, 1)
        assert dashboard.retry_success(session, StatsFilter(cluster="green"), 100).looked_at == 0
        assert dashboard.retry_success(session, StatsFilter(), 2).looked_at == 2
