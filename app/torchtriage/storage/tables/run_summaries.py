"""The table of run summaries, which clients send at the end of runs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from torchtriage.storage.tables.base import Base, Number


class RunSummaryRow(Base):
    """The summary of one run. Without an incident, the run was successful; with one, it is deleted with the incident.
    An empty text means no cluster."""

    __tablename__ = "run_summaries"
    __table_args__ = (
        Index("ix_run_summaries_job_name", "job_name", "cluster", "at"),
        {"sqlite_autoincrement": True},
    )

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    incident_number: Mapped[int | None] = mapped_column(
        Number, ForeignKey("incidents.number", ondelete="CASCADE"), unique=True
    )
    job_name: Mapped[str]
    cluster: Mapped[str]
    job_id: Mapped[str | None]
    at: Mapped[datetime]
    document: Mapped[dict[str, Any]]
