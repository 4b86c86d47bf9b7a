"""Messages to send and what came of them, where they were sent, and what Slack sent already."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from torchtriage.storage.tables.base import Base, Number


class OutboxRow(Base):
    """One thing to do at another service. `key` is what makes putting it in again do nothing.

    `due_at` is when it may be tried next; a process that takes it moves it on by a little, again and again while at it,
    so that what was being done by a process that is no more is due again soon. `tries` tells such a try from the next.
    """

    __tablename__ = "outbox"
    __table_args__ = (Index("ix_outbox_state", "state", "due_at"), {"sqlite_autoincrement": True})

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    key: Mapped[str] = mapped_column(unique=True)
    kind: Mapped[str]
    channel: Mapped[str]
    incident_number: Mapped[int | None] = mapped_column(
        Number, ForeignKey("incidents.number", ondelete="CASCADE"), index=True
    )
    group_number: Mapped[int | None] = mapped_column(
        Number, ForeignKey("groups.number", ondelete="CASCADE"), index=True
    )
    detail: Mapped[dict[str, Any]]
    state: Mapped[str]
    tries: Mapped[int]
    put_at: Mapped[datetime]
    due_at: Mapped[datetime]
    ended_at: Mapped[datetime | None] = mapped_column(index=True)
    problem: Mapped[str | None]


class LaneRow(Base):
    """When a channel may be sent to next: one at a time, at the pace that it bears."""

    __tablename__ = "outbox_lanes"

    channel: Mapped[str] = mapped_column(primary_key=True)
    free_at: Mapped[datetime]


class ThreadRow(Base):
    """Where a group is told of, by channel: the first message of a thread in a Slack channel, or an issue (`ts`) of a
    project (`slack_channel`); and the incident that it reports."""

    __tablename__ = "slack_threads"

    group_number: Mapped[int] = mapped_column(Number, ForeignKey("groups.number", ondelete="CASCADE"), primary_key=True)
    channel: Mapped[str] = mapped_column(primary_key=True)
    slack_channel: Mapped[str]
    ts: Mapped[str]
    incident_number: Mapped[int | None] = mapped_column(
        Number, ForeignKey("incidents.number", ondelete="SET NULL"), index=True
    )


class SlackRequestRow(Base):
    """A request of Slack's that was taken in: another with the same key is a repeat."""

    __tablename__ = "slack_requests"

    key: Mapped[str] = mapped_column(primary_key=True)
    at: Mapped[datetime] = mapped_column(index=True)
