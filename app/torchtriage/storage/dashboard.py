"""The data of the dashboard, mostly from maintained counts. Each function is one step of the caller's transaction."""

from __future__ import annotations

from collections import defaultdict
from datetime import date, timedelta
from typing import Literal

from sqlalchemy import ScalarSelect, Subquery, case, func, literal, select, text
from sqlalchemy.orm import Session, aliased

from torchtriage.domain.dashboard import Range
from torchtriage.domain.stats import Precision, RetrySuccess, StatsFilter, Total
from torchtriage.domain.verdict import FAILED
from torchtriage.storage import daily_counts, periods
from torchtriage.storage.stats import conditions
from torchtriage.storage.tables import CountRow, FeedbackRow, IncidentRow
from torchtriage.storage.tables.incidents import RETRIED

_HEALTHY = "healthy"
_MAX_FEEDBACK = 10_000
_FAILED = literal("failed of ")


def over_time(
    session: Session, wanted: Range, cluster: str | None, by: Literal["day", "month"]
) -> dict[str | None, dict[str, int]]:
    """Returns the failures received in these days by entry (None: no entry), then by day (2026-05-01) or month."""
    days = _days(wanted) if by == "day" else periods.covering_periods(wanted.first, wanted.last)
    names = {period: periods.period_name(period if by == "day" else periods.month_of(period)) for period in days}
    query = select(CountRow.entry, CountRow.period, CountRow.count).where(
        CountRow.period.in_(days),
        CountRow.every == (cluster is None),
        CountRow.cluster == (cluster or daily_counts.NONE),
        CountRow.outcome.in_(FAILED),
    )
    found: dict[str | None, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    # Without the ORM, which would take most of the time for this many rows.
    for entry, period, count in session.connection().execute(query).all():
        found[entry or None][names[period]] += count
    return found


def by_cluster(session: Session, wanted: Range, cluster: str | None) -> list[Total]:
    """Returns the number of verdicts received in these days, by cluster, outcome and entry."""
    columns = (CountRow.cluster, CountRow.outcome, CountRow.entry)
    query = select(*columns, func.sum(CountRow.count), func.sum(CountRow.cost))
    query = query.where(
        CountRow.period.in_(periods.covering_periods(wanted.first, wanted.last)),
        CountRow.every == (not daily_counts.EVERY),
    )
    if cluster is not None:
        query = query.where(CountRow.cluster == cluster)
    return [_total(*row) for row in session.execute(query.group_by(*columns))]


def first_day(session: Session) -> date | None:
    """Returns the day of the first incident with a verdict, or None."""
    query = select(func.min(CountRow.period)).where(CountRow.period > periods.FIRST_DAY)
    found = session.execute(query).scalar()
    return periods.day_of(found) if found else None


def clusters(session: Session) -> list[str]:
    """Returns the names of all clusters that have incidents, sorted."""
    first = aliased(IncidentRow)
    names = select(func.min(first.cluster).label("name")).cte("names", recursive=True)
    later = aliased(IncidentRow)
    # One index lookup per cluster: clusters are few, incidents are many.
    after = select(func.min(later.cluster)).where(later.cluster > names.c.name).scalar_subquery()
    names = names.union_all(select(after).where(names.c.name.is_not(None)))
    return list(session.execute(select(names.c.name).where(names.c.name.is_not(None))).scalars())


def retry_success(session: Session, wanted: StatsFilter, most: int) -> RetrySuccess:
    """Returns what followed the latest incidents that were advised to retry and whose job has an id."""
    columns = [IncidentRow.job_id, IncidentRow.cluster, IncidentRow.attempt, IncidentRow.received_at, IncidentRow.entry]
    latest = select(*columns).where(*conditions(wanted), text(RETRIED)).order_by(IncidentRow.received_at.desc())
    advised = latest.limit(most).subquery()
    # The next attempt by number, or by time if the sender gives no numbers. Each is one index lookup.
    ways = [(numbered, clustered) for numbered in (True, False) for clustered in (True, False)]
    came = func.coalesce(*(_next_attempt(advised, *way) for way in ways)).label("came")
    retried = select(came, (_FAILED + func.coalesce(advised.c.entry, "")).label("same")).subquery()
    kinds = (retried.c.came.is_not(None), retried.c.came == _HEALTHY, retried.c.came == retried.c.same)
    counted = (func.coalesce(func.sum(case((kind, 1), else_=0)), 0) for kind in kinds)
    looked_at, heard, healthy, same = map(
        int, session.execute(select(func.count(), *counted).select_from(retried)).one()
    )
    return RetrySuccess(looked_at, healthy, same, heard - healthy - same)


def precision(session: Session, wanted: StatsFilter, most: int) -> list[Precision]:
    """Returns how often verdicts were judged right, for the entries with the most feedback in this time. Reads only the
    latest _MAX_FEEDBACK pieces of feedback."""
    said = select(FeedbackRow.about, FeedbackRow.verdict).order_by(FeedbackRow.at.desc())
    if wanted.since is not None:
        said = said.where(FeedbackRow.at >= wanted.since)
    if wanted.until is not None:
        said = said.where(FeedbackRow.at < wanted.until)
    if wanted.cluster is not None:
        # A lookup per row: with a join, a planner might read all incidents of the cluster.
        cluster = select(IncidentRow.cluster).where(IncidentRow.number == FeedbackRow.incident_number)
        said = said.where(cluster.scalar_subquery() == wanted.cluster)
    latest = said.limit(_MAX_FEEDBACK).subquery()
    right = func.sum(case((latest.c.verdict == "right", 1), else_=0))
    query = select(latest.c.about, right, func.count() - right).group_by(latest.c.about)
    query = query.order_by(func.count().desc(), latest.c.about).limit(most)
    return [Precision(entry, int(agreed), int(rest)) for entry, agreed, rest in session.execute(query)]


def _days(wanted: Range) -> list[int]:
    return [periods.day_period(wanted.first + timedelta(days=at)) for at in range(wanted.days)]


def _total(part: str, outcome: str, entry: str, count: int, cost: int) -> Total:
    return Total(part, outcome, entry or None, int(count), int(cost) / daily_counts.COST)


def _next_attempt(advised: Subquery, numbered: bool, clustered: bool) -> ScalarSelect[str]:
    """Returns the outcome of the attempt after an advised one, with its entry if it failed. NULL if the job cannot be
    identified in this way, if no later attempt is known, or if its end is not known."""
    later, before = aliased(IncidentRow), advised.c
    came = case(
        (later.outcome == _HEALTHY, literal(_HEALTHY)),
        (later.outcome.in_(FAILED), _FAILED + func.coalesce(later.entry, "")),
    )
    query = select(came).where(later.job_id == before.job_id, later.outcome.is_not(None)).correlate(advised)
    query = (
        query.where(later.cluster == before.cluster)
        if clustered
        else query.where(later.cluster.is_(None), before.cluster.is_(None))
    )
    if numbered:
        query = query.where(later.attempt > before.attempt).order_by(later.attempt, later.received_at)
    else:
        query = query.where(later.attempt.is_(None), before.attempt.is_(None), later.received_at > before.received_at)
        query = query.order_by(later.received_at)
    return query.limit(1).scalar_subquery()
