"""What the dashboard shows, mostly from counts that are kept. Each function is one step of a transaction."""

from __future__ import annotations

from collections import defaultdict
from datetime import date
from typing import Any, Literal

from sqlalchemy import ColumnElement, case, func, select, text
from sqlalchemy.orm import Session

from app.domain.stats import Precision, RetrySuccess, StatsFilter, Total
from app.storage.stats import conditions
from app.storage.tables import DailyCountRow, FeedbackRow, IncidentRow
from app.storage.tables.incidents import RETRIED

_Attempt = tuple[int | None, str, str | None, str | None]


def totals(
    session: Session, first: date, last: date, cluster: str | None, by: Literal["day", "month", "cluster"]
) -> list[Total]:
    """-> verdicts received from the first to the last day, by day (2026-05-01), month (2026-05) or cluster."""
    part = {
        "day": DailyCountRow.day.expression,
        "month": func.substr(DailyCountRow.day, 1, 7),
        "cluster": DailyCountRow.cluster.expression,
    }[by]
    columns = (part, DailyCountRow.outcome, DailyCountRow.entry)
    query = select(*columns, func.sum(DailyCountRow.count), func.sum(DailyCountRow.gpu_hours))
    query = query.where(DailyCountRow.day.between(first.isoformat(), last.isoformat()))
    if cluster is not None:
        query = query.where(DailyCountRow.cluster == cluster)
    return [
        Total(at, outcome, entry or None, int(count), round(hours, 4))
        for at, outcome, entry, count, hours in session.execute(query.group_by(*columns))
    ]


def first_day(session: Session) -> date | None:
    """-> the day of the first incident that has a verdict."""
    found = session.execute(select(func.min(DailyCountRow.day))).scalar()
    return date.fromisoformat(found) if found else None


def clusters(session: Session) -> list[str]:
    """-> the names of all clusters that incidents are of, in order."""
    found: list[str] = []
    # One step in the index for each: there are few, and far more incidents.
    while (name := session.execute(select(func.min(IncidentRow.cluster)).where(*_after(found))).scalar()) is not None:
        found.append(name)
    return found


def retry_success(session: Session, wanted: StatsFilter, most: int) -> RetrySuccess:
    """-> what came of the latest incidents whose advice was a retry, where the job is known by an id."""
    columns = (
        IncidentRow.job_id, IncidentRow.cluster, IncidentRow.attempt, IncidentRow.received_at, IncidentRow.entry,
    )  # fmt: skip
    query = select(*columns).where(*conditions(wanted), text(RETRIED))
    advised = session.execute(query.order_by(IncidentRow.received_at.desc()).limit(most)).all()
    attempts = _attempts(session, list({row.job_id for row in advised}))
    said = [_came(row, attempts[row.job_id, row.cluster]) for row in advised]
    return RetrySuccess(len(said), said.count("healthy"), said.count("same"), said.count("other"))


def precision(session: Session, wanted: StatsFilter, most: int) -> list[Precision]:
    """-> of the entries that people spoke of most in this time, how often they were right."""
    right = func.sum(case((FeedbackRow.verdict == "right", 1), else_=0))
    query = select(FeedbackRow.about, right, func.count() - right)
    if wanted.since is not None:
        query = query.where(FeedbackRow.at >= wanted.since)
    if wanted.until is not None:
        query = query.where(FeedbackRow.at < wanted.until)
    if wanted.cluster is not None:
        query = query.join(IncidentRow, IncidentRow.number == FeedbackRow.incident_number)
        query = query.where(IncidentRow.cluster == wanted.cluster)
    query = query.group_by(FeedbackRow.about).order_by(func.count().desc(), FeedbackRow.about).limit(most)
    return [Precision(entry, int(agreed), int(rest)) for entry, agreed, rest in session.execute(query)]


def _after(found: list[str]) -> list[ColumnElement[bool]]:
    return [IncidentRow.cluster > found[-1]] if found else []


def _attempts(session: Session, job_ids: list[str]) -> dict[tuple[str, str | None], list[_Attempt]]:
    found: dict[tuple[str, str | None], list[_Attempt]] = defaultdict(list)
    job: tuple[Any, ...] = (IncidentRow.job_id, IncidentRow.cluster)
    columns: tuple[Any, ...] = (IncidentRow.attempt, IncidentRow.received_at, IncidentRow.outcome, IncidentRow.entry)
    query = select(*job, *columns).where(IncidentRow.job_id.in_(job_ids))
    rows: Any = session.execute(query)
    for job_id, cluster, attempt, received_at, outcome, entry in rows:
        found[job_id, cluster].append((attempt, received_at.isoformat(), outcome, entry))
    return found


def _came(advised: object, attempts: list[_Attempt]) -> str:
    """-> what the job's next attempt came to, by its number, or by time where the sender gives none."""
    attempt, received, entry = advised.attempt, advised.received_at.isoformat(), advised.entry  # type: ignore[attr-defined]
    numbered = attempt is not None
    later = [
        known
        for known in attempts
        if (known[0] is not None and known[0] > attempt if numbered else known[1] > received) and known[2] is not None
    ]
    if not later:
        return "unknown"
    following = min(later, key=lambda known: (known[0] if numbered else 0, known[1]))
    if following[2] == "healthy":
        return "healthy"
    return "same" if following[3] == entry else "other"
