"""What decides whether people are alerted about a group. Each function is one step of the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from torchtriage.domain.group import GroupStatus
from torchtriage.domain.notice import Thread
from torchtriage.storage.groups import row_of
from torchtriage.storage.pagination import number_of
from torchtriage.storage.slack_state import thread_in
from torchtriage.storage.tables import GroupRow, IncidentRow, ThreadRow


def thresholds_passed(
    session: Session, group: str, counts: Iterable[int], gpu_hours: Iterable[int]
) -> tuple[float | None, float | None]:
    """Returns the highest thresholds of count and cost that a group has passed without an alert, and marks them as
    alerted.

    Raises NotFound.
    """
    row = row_of(session, group)
    session.refresh(row)
    count = _highest(counts, row.count, row.told_count)
    cost = _highest(gpu_hours, row.gpu_hours or 0, row.told_gpu_hours)
    if count is not None:
        row.told_count = int(count)
    if cost is not None:
        row.told_gpu_hours = cost
    session.flush()
    return count, cost


def recent(session: Session, group: str, since: datetime) -> int:
    """Returns the number of a group's incidents received since then."""
    query = select(func.count()).where(IncidentRow.group_number == number_of(group), IncidentRow.received_at >= since)
    return session.execute(query).scalar_one()


def latest(session: Session, group: str) -> str | None:
    """Returns the id of a group's latest incident, or None."""
    query = select(IncidentRow.number).where(IncidentRow.group_number == number_of(group))
    number = session.execute(query.order_by(IncidentRow.number.desc()).limit(1)).scalar_one_or_none()
    return str(number) if number else None


def channels_with_thread(session: Session, group: str) -> list[str]:
    """Returns the names of the channels in which a group has a thread."""
    query = select(ThreadRow.channel).where(ThreadRow.group_number == number_of(group)).order_by(ThreadRow.channel)
    return list(session.execute(query).scalars())


def firing(session: Session, channel: str, since: datetime, most: int) -> list[tuple[str, Thread]]:
    """Returns the open groups that have a thread in this channel and an incident since then, latest seen first."""
    open_ = [GroupRow.status == GroupStatus.OPEN, GroupRow.merged_into.is_(None), GroupRow.last_seen > since]
    query = select(ThreadRow).join(GroupRow, GroupRow.number == ThreadRow.group_number)
    query = query.where(ThreadRow.channel == channel, *open_).order_by(
        GroupRow.last_seen.desc(), GroupRow.number.desc()
    )
    rows = session.execute(query.limit(most)).scalars()
    return [(str(row.group_number), thread_in(row)) for row in rows]


def _highest(thresholds: Iterable[int], reached: float, announced: float | None) -> float | None:
    passed = [threshold for threshold in thresholds if (announced or 0) < threshold <= reached]
    return float(max(passed)) if passed else None
