"""Slack's stored state: the threads of groups, and the requests already accepted.

Each function is one step of the caller's transaction.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from torchtriage.domain.notice import Thread
from torchtriage.storage.database import insert
from torchtriage.storage.pagination import number_of
from torchtriage.storage.tables import SlackRequestRow, ThreadRow


def thread_of(session: Session, group: str, channel: str) -> Thread | None:
    """Returns the group's thread in one of the configured channels, or None."""
    row = session.get(ThreadRow, (number_of(group), channel))
    return thread_in(row) if row else None


def thread_in(row: ThreadRow) -> Thread:
    return Thread(row.slack_channel, row.ts, str(row.incident_number) if row.incident_number else None)


def keep_thread(session: Session, group: str, channel: str, thread: Thread | None) -> None:
    """Stores a group's thread; None removes it."""
    number = number_of(group)
    session.execute(delete(ThreadRow).where(ThreadRow.group_number == number, ThreadRow.channel == channel))
    if thread:
        incident = number_of(thread.incident) if thread.incident else None
        session.add(
            ThreadRow(
                group_number=number,
                channel=channel,
                slack_channel=thread.channel,
                ts=thread.ts,
                incident_number=incident,
            )
        )
    session.flush()


def move_threads(session: Session, incident: int, group: int, into: int) -> None:
    """Moves threads that begin with an incident from one group to another, unless that group has a thread in the same
    channel."""
    own = select(ThreadRow.channel).where(ThreadRow.group_number == into)
    theirs = [ThreadRow.group_number == group, ThreadRow.incident_number == incident, ThreadRow.channel.not_in(own)]
    moving = update(ThreadRow).where(*theirs).values(group_number=into)
    session.execute(moving, execution_options={"synchronize_session": False})


def is_first(session: Session, key: str, now: datetime) -> bool:
    """Records a request from Slack. Returns False if any process has recorded it before."""
    noting = insert(session, SlackRequestRow).values(key=key, at=now).on_conflict_do_nothing(index_elements=["key"])
    return session.execute(noting.returning(SlackRequestRow.key)).scalar_one_or_none() is not None


def forget_requests(session: Session, before: datetime) -> None:
    session.execute(delete(SlackRequestRow).where(SlackRequestRow.at < before))
