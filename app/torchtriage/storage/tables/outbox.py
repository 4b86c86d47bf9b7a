"""The tables of the outbox, of threads, and of requests from Slack."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from torchtriage.storage.tables.base import Base, Number


class OutboxRow(Base):
    """One thing to do at another service. Adding an item whose `key` exists does nothing.

    `due_at` is the time of the next try. A process that takes the item moves it ahead again and again while it works,
    so that the item is soon due again if the process dies. `tries` distinguishes one try from the next.
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
    """The time from which a channel accepts the next message."""

    __tablename__ = "outbox_lanes"

    channel: Mapped[str] = mapped_column(primary_key=True)
    free_at: Mapped[datetime]


class ThreadRow(Base):
    """A group's thread in a channel: the first message of a Slack thread, or an issue (`ts`) of a project
    (`slack_channel`); and the incident that it reports."""

    __tablename__ = "slack_threads"

    group_number: Mapped[int] = mapped_column(Number, ForeignKey("groups.number", ondelete="CASCADE"), primary_key=True)
    channel: Mapped[str] = mapped_column(primary_key=True)
    slack_channel: Mapped[str]
    ts: Mapped[str]
    incident_number: Mapped[int | None] = mapped_column(
        Number, ForeignKey("incidents.number", ondelete="SET NULL"), index=True
    )


class SlackRequestRow(Base):
    """A request from Slack that was accepted. Another one with the same key is a repeat."""

    __tablename__ = "slack_requests"

    key: Mapped[str] = mapped_column(primary_key=True)
    at: Mapped[datetime] = mapped_column(index=True)
