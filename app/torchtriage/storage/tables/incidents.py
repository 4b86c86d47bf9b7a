"""The tables of incidents, their files, verdicts and feedback."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from torchtriage.storage.tables.base import Base, Number
from torchtriage.storage.tables.groups import GroupRow

RETRIED = (
    # Rows whose later attempts show whether the advice was good.
    "advice IN ('retry', 'retry-elsewhere') AND job_id IS NOT NULL"
)


class IncidentRow(Base):
    """One stored log with its verdict. `request` is the key that recognizes a repeated request."""

    __tablename__ = "incidents"
    __table_args__ = (
        # Lists are sorted by time of receipt; each filter has an index in that order.
        Index("ix_incidents_received_at", "received_at", "number"),
        Index("ix_incidents_group_number", "group_number", "received_at", "number"),
        Index("ix_incidents_state", "state", "received_at", "number"),
        Index("ix_incidents_outcome", "outcome", "received_at", "number"),
        Index("ix_incidents_entry", "entry", "received_at", "number"),
        Index("ix_incidents_cluster", "cluster", "received_at", "number"),
        Index("ix_incidents_user", "user", "received_at", "number"),
        # Contains all columns that pages about hosts need, so that they read no rows.
        Index(
            "ix_incidents_host",
            "host",
            "received_at",
            "number",
            "cluster",
            "outcome",
            "hardware",
            "entry",
            "job_id",
            "gpu_hours",
        ),
        Index("ix_incidents_job_id", "job_id", "cluster", "attempt", "received_at", "outcome", "entry"),
        Index(
            "ix_incidents_retried",
            "received_at",
            "cluster",
            "job_id",
            "attempt",
            "number",
            "entry",
            postgresql_where=text(RETRIED),
            sqlite_where=text(RETRIED),
        ),
        Index(
            "ix_incidents_case",
            "entry",
            "case",
            "number",
            postgresql_where=text('"case" IS NOT NULL'),
            sqlite_where=text('"case" IS NOT NULL'),
        ),
        {"sqlite_autoincrement": True},
    )

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    request: Mapped[str] = mapped_column(unique=True)
    received_at: Mapped[datetime]
    state: Mapped[str]
    tries: Mapped[int] = mapped_column(default=0)
    next_try: Mapped[datetime | None]
    job: Mapped[dict[str, Any]]
    job_id: Mapped[str | None]
    attempt: Mapped[int | None]
    cluster: Mapped[str | None]
    user: Mapped[str | None]
    log_sha256: Mapped[str]
    triaged_at: Mapped[datetime | None]
    failure: Mapped[str | None]
    verdict: Mapped[dict[str, Any] | None]
    outcome: Mapped[str | None]
    entry: Mapped[str | None]
    case: Mapped[str | None]  # the case of the entry that answers; empty if none does, NULL if only `verdict` has it
    host: Mapped[str | None]
    advice: Mapped[str | None]  # from the verdict: retry, retry-elsewhere, fix-first, none
    hardware: Mapped[bool | None]
    gpu_hours: Mapped[float | None]
    knowledge: Mapped[str | None] = mapped_column(index=True)
    fingerprint: Mapped[str | None] = mapped_column(index=True)
    group_number: Mapped[int | None] = mapped_column(Number, ForeignKey("groups.number", ondelete="SET NULL"))

    group: Mapped[GroupRow | None] = relationship(lazy="raise")
    feedback: Mapped[list[FeedbackRow]] = relationship(order_by="FeedbackRow.number", lazy="raise")


class FileRow(Base):
    """One file of an incident's log. Its bytes are in the blob store under `sha256`."""

    __tablename__ = "incident_files"

    incident_number: Mapped[int] = mapped_column(
        Number, ForeignKey("incidents.number", ondelete="CASCADE"), primary_key=True
    )
    position: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    sha256: Mapped[str] = mapped_column(index=True)
    bytes: Mapped[int] = mapped_column(BigInteger)
    lines: Mapped[int] = mapped_column(BigInteger)


class EarlierVerdictRow(Base):
    """A verdict that was replaced by one of other knowledge."""

    __tablename__ = "earlier_verdicts"

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    incident_number: Mapped[int] = mapped_column(Number, ForeignKey("incidents.number", ondelete="CASCADE"), index=True)
    verdict: Mapped[dict[str, Any]]
    triaged_at: Mapped[datetime | None]
    replaced_at: Mapped[datetime]


class ExplanationRow(Base):
    """A language model's answer about an incident."""

    __tablename__ = "explanations"

    incident_number: Mapped[int] = mapped_column(
        Number, ForeignKey("incidents.number", ondelete="CASCADE"), primary_key=True
    )
    document: Mapped[dict[str, Any]]


class FeedbackRow(Base):
    """A person's feedback about an incident's verdict."""

    __tablename__ = "feedback"
    __table_args__ = (Index("ix_feedback_at", "at", "about", "verdict", "incident_number"),)

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    incident_number: Mapped[int] = mapped_column(Number, ForeignKey("incidents.number", ondelete="CASCADE"), index=True)
    about: Mapped[str | None] = mapped_column(index=True)  # the entry of the verdict
    verdict: Mapped[str]
    entry: Mapped[str | None]
    note: Mapped[str | None]
    by: Mapped[str]
    at: Mapped[datetime]
