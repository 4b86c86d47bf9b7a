from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlalchemy import select

from app.domain.stats import StatsFilter
from app.storage import counts, dashboard, incidents, stats, verdicts
from app.storage.database import Database
from app.storage.tables import DailyCountRow, IncidentRow
from tests.storage import values

ENTRIES = ("cuda.oom", "nccl.timeout", None)
YEAR = (date(2026, 1, 1), date(2026, 12, 31))


def found(dice: random.Random) -> Any:
    entry = dice.choice(ENTRIES)
    outcome = dice.choice(["explained", "healthy"]) if entry else "unexplained"
    fingerprint = f"v1:{dice.randrange(5)}" if outcome != "healthy" else None
    return values.finding(fingerprint, entry=entry, outcome=outcome, gpu_hours=dice.choice([None, 0.1, 2.5]))


def kept(database: Database) -> Counter[tuple[str, str, str, str]]:
    with database.reading() as session:
        rows = session.execute(select(DailyCountRow)).scalars()
        return Counter({(row.day, row.cluster, row.outcome, row.entry): row.count for row in rows})


def true(database: Database) -> Counter[tuple[str, str, str, str]]:
    with database.reading() as session:
        rows = session.execute(select(IncidentRow).where(IncidentRow.outcome.is_not(None))).scalars()
        known = [counts.of(row) for row in rows]
    return Counter((one.day, one.cluster, one.outcome, one.entry) for one in known if one)


def test_counts_stay_true_while_verdicts_come_change_and_go(database: Database) -> None:
    dice = random.Random(4)
    plan = [(f"log {i}", i * 30_000, found(dice), found(dice), dice.random()) for i in range(60)]

    def live(step: tuple[str, int, Any, Any, float]) -> None:
        content, at, first, second, fate = step
        with database.transaction() as session:
            incident = values.triaged(session, content, at, first, cluster="blue" if at % 60_000 else None)
        if fate < 0.6:
            with database.transaction() as session:
                assert verdicts.replace(session, incident, {"outcome": second.outcome}, second, values.START)
        if fate < 0.3:
            with database.transaction() as session:
                incidents.remove(session, incident)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(live, plan))
    assert kept(database) == true(database)
    with database.reading() as session:
        costs = session.execute(select(DailyCountRow.gpu_hours)).scalars()
        lost = session.execute(select(IncidentRow.gpu_hours).where(IncidentRow.outcome.is_not(None))).scalars()
        assert abs(sum(costs) - sum(hours or 0 for hours in lost)) < 1e-6


def test_what_has_no_verdict_is_in_no_count(database: Database) -> None:
    with database.transaction() as session:
        waiting = values.added(session, "waits")
        failed = values.added(session, "failed")
        assert verdicts.save_failure(session, failed, "why", values.START)
        incidents.remove(session, waiting)
    assert not kept(database)


def test_days_of_the_counts_and_pieces_of_days_add_up(database: Database) -> None:
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
                    by_day = stats.counted(session, wanted, by, "day")
                    by_hour: Counter[tuple[str, str | None]] = Counter()
                    for stat in stats.counted(session, wanted, by, "hour"):
                        by_hour[stat.at[:10], stat.value] += stat.count
                    assert {(stat.at[:10], stat.value): stat.count for stat in by_day} == dict(by_hour)


def test_totals_by_day_month_and_cluster(database: Database) -> None:
    with database.transaction() as session:
        values.triaged(session, "a", 0, values.finding("v1:a", gpu_hours=1.5), cluster="blue")
        values.triaged(session, "b", 86_400, values.finding("v1:a", gpu_hours=2.0), cluster="blue")
        values.triaged(session, "c", 86_400 * 40, values.finding("v1:b", entry=None, outcome="unexplained"))
    with database.reading() as session:
        days = dashboard.totals(session, *YEAR, None, "day")
        assert sorted((one.part, one.entry, one.count) for one in days if one.entry) == [
            ("2026-05-01", "cuda.oom", 1),
            ("2026-05-02", "cuda.oom", 1),
        ]
        months = {(one.part, one.entry): one for one in dashboard.totals(session, *YEAR, None, "month")}
        assert months["2026-05", "cuda.oom"].gpu_hours == 3.5
        assert months["2026-06", None].outcome == "unexplained"
        assert {one.part for one in dashboard.totals(session, *YEAR, None, "cluster")} == {"blue", ""}
        assert len(dashboard.totals(session, *YEAR, "blue", "day")) == 2
        assert dashboard.first_day(session) == date(2026, 5, 1)
        assert dashboard.clusters(session) == ["blue"]
        assert dashboard.totals(session, date(2027, 1, 1), date(2027, 1, 2), None, "day") == []


def test_what_came_of_the_advice_to_retry(database: Database) -> None:
    def attempt(job: str, number: int | None, at: int, entry: str | None, advice: str, cluster: str = "blue") -> None:
        healthy = entry is None
        finding = values.finding(
            None if healthy else f"v1:{entry}", entry=entry, outcome="healthy" if healthy else "explained"
        )
        with database.transaction() as session:
            incident = values.added(session, f"{job} {number} {at}", at, job_id=job, attempt=number, cluster=cluster)
            assert verdicts.save(session, incident, {"action": {"advice": advice}}, finding, values.START)

    attempt("same", 0, 0, "nccl.timeout", "retry")
    attempt("same", 1, 10, "nccl.timeout", "fix-first")
    attempt("other", 0, 20, "nccl.timeout", "retry-elsewhere")
    attempt("other", 2, 40, "cuda.oom", "fix-first")
    attempt("well", None, 50, "nccl.timeout", "retry")
    attempt("well", None, 60, None, "none")
    attempt("silent", 3, 70, "nccl.timeout", "retry")
    attempt("silent", 2, 80, "nccl.timeout", "none")  # an earlier attempt, told later
    attempt("same", 5, 90, None, "none", "green")  # another cluster's job of the same id
    with database.reading() as session:
        came = dashboard.retry_success(session, StatsFilter(), 100)
        assert (came.looked_at, came.same, came.other, came.healthy, came.unknown) == (4, 1, 1, 1, 1)
        assert dashboard.retry_success(session, StatsFilter(cluster="green"), 100).looked_at == 0
        assert dashboard.retry_success(session, StatsFilter(), 2).looked_at == 2
