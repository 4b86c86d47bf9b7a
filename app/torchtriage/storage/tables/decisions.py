"""The table of decisions about failed attempts, with their grades."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from torchtriage.storage.tables.base import Base, Number


class DecisionRow(Base):
    """One decision. An incident has at most one, which is deleted with it."""

    __tablename__ = "decisions"
    __table_args__ = (
        Index("ix_decisions_job_id", "job_id", "cluster", "attempt"),  # finds the decisions that a later attempt grades
        # Lists are sorted by number; each filter has an index in that order.
        Index("ix_decisions_action", "action", "number"),
        Index("ix_decisions_grade", "grade", "number"),
        {"sqlite_autoincrement": True},
    )

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    incident_number: Mapped[int] = mapped_column(
        Number, ForeignKey("incidents.number", ondelete="CASCADE"), unique=True
    )
    at: Mapped[datetime]
    by: Mapped[str]
    mode: Mapped[str]
    job_id: Mapped[str | None]
    cluster: Mapped[str | None]
    attempt: Mapped[int]
    action: Mapped[str]
    grade: Mapped[str | None]
    graded_at: Mapped[datetime | None]
    graded_by: Mapped[int | None] = mapped_column(Number)  # number of an incident, which may have been deleted
    document: Mapped[dict[str, Any]]
