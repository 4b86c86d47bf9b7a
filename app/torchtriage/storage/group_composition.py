"""The runs of a group, and other runs of the same time. Each function is one step of the caller's transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from torchtriage.domain.group_composition import LaterAttempt
from torchtriage.domain.verdict import FAILED
from torchtriage.storage.pagination import number_of
from torchtriage.storage.tables import IncidentRow

_AT_LEAST = timedelta(days=30)  # minimum period, before the group's latest incident, in which other runs are looked for
_AFTER = timedelta(days=1)  # and the period after it
_ORDER = (IncidentRow.received_at.desc(), IncidentRow.number.desc())
_OF_JOB = ("job_name", "queue", "image", "commit")
_PACKAGES = ("torch", "cuda", "nccl", "python")


class Run(NamedTuple):
    """An incident's number, and the known properties of its run."""

    number: int
    known: dict[str, str]


def runs(session: Session, group: str, most: int) -> tuple[list[Run], list[Run]]:
    """Returns the latest `most` runs of a group, and as many others of the same time; latest first."""
    columns = (IncidentRow.number, IncidentRow.received_at, IncidentRow.host, IncidentRow.user, IncidentRow.cluster,
               IncidentRow.job)  # fmt: skip
    query = select(*columns).order_by(*_ORDER).limit(most)
    connection = session.connection()
    theirs = connection.execute(query.where(IncidentRow.group_number == number_of(group))).all()
    if not theirs:
        return [], []
    newest, oldest = theirs[0].received_at, theirs[-1].received_at
    since = min(oldest, newest - _AT_LEAST)
    is_other_group = or_(IncidentRow.group_number != number_of(group), IncidentRow.group_number.is_(None))
    time = (IncidentRow.received_at >= since, IncidentRow.received_at <= newest + _AFTER)
    others = connection.execute(query.where(is_other_group, *time, IncidentRow.outcome.is_not(None))).all()
    return [_run(row) for row in theirs], [_run(row) for row in others]


def versions(session: Session, numbers: Sequence[int]) -> dict[int, dict[str, str]]:
    """Returns the versions that the logs of these incidents show, by package."""
    query = select(IncidentRow.number, IncidentRow.verdict).where(IncidentRow.number.in_(numbers))
    found: dict[int, dict[str, str]] = {}
    for number, verdict in session.connection().execute(query):
        known = ((verdict or {}).get("run") or {}).get("versions") or {}
        found[number] = {name: str(known[name]) for name in _PACKAGES if known.get(name)}
    return found


def later_attempts(session: Session, group: str, most: int) -> list[LaterAttempt]:
    """Returns what followed the latest `most` incidents of a group that have a job id, latest first."""
    row = IncidentRow
    columns = (row.number, row.job_id, row.cluster, row.attempt, row.received_at, row.outcome, row.group_number)
    connection = session.connection()
    query = select(*columns).where(row.group_number == number_of(group), row.job_id.is_not(None))
    latest = connection.execute(query.order_by(*_ORDER).limit(most)).all()
    attempts: dict[tuple[str, str | None], list[Any]] = defaultdict(list)
    jobs = {one.job_id for one in latest}
    for one in connection.execute(select(*columns).where(row.job_id.in_(jobs))):
        attempts[one.job_id, one.cluster].append(one)
    return [_next_attempt(one, attempts[one.job_id, one.cluster]) for one in latest]


def _next_attempt(one: Any, attempts: list[Any]) -> LaterAttempt:
    """Finds the next attempt by number, or by time if the sender gives no numbers."""
    later = [other for other in attempts if _is_later(other, one)]
    after = min(later, key=lambda other: (other.attempt or 0, other.received_at), default=None)
    came = "unknown"
    if after is not None and after.outcome == "healthy":
        came = "healthy"
    elif after is not None and after.outcome in FAILED:
        came = "same" if after.group_number == one.group_number else "other"
    return LaterAttempt(str(one.number), came, str(after.number) if after is not None else None)


def _is_later(other: Any, one: Any) -> bool:
    if other.attempt is not None and one.attempt is not None:
        return bool(other.attempt > one.attempt)
    return other.attempt is one.attempt is None and bool(other.received_at > one.received_at)


def _run(row: Any) -> Run:
    known = {"host": row.host, "user": row.user, "cluster": row.cluster}
    known |= {name: row.job.get(name) for name in _OF_JOB}
    return Run(row.number, {name: str(value) for name, value in known.items() if value})
