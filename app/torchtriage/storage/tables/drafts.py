"""The tables of drafts and their back-tests."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from torchtriage.storage.tables.base import Base, Number


class DraftRow(Base):
    """One draft. `document` is what was typed. `revision` increases with each change. `expect` is the draft's answer to
    its example in this revision, in both languages. `tracked_to` is the number of the last incident counted in
    `tracking`."""

    __tablename__ = "drafts"
    __table_args__ = ({"sqlite_autoincrement": True},)

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    entry: Mapped[str] = mapped_column(unique=True)
    revision: Mapped[int]
    document: Mapped[dict[str, Any]]
    expect: Mapped[dict[str, Any] | None]
    created_by: Mapped[str]
    created_at: Mapped[datetime]
    changed_by: Mapped[str]
    changed_at: Mapped[datetime]
    state: Mapped[str] = mapped_column(default="draft", server_default="draft")
    approved_by: Mapped[str | None]
    approved_at: Mapped[datetime | None]
    tracked_to: Mapped[int | None] = mapped_column(Number)
    tracking: Mapped[dict[str, Any] | None]
    incident_number: Mapped[int | None] = mapped_column(
        Number, ForeignKey("incidents.number", ondelete="SET NULL"), index=True
    )


class BackTestRow(Base):
    """The latest back-test of a draft. `run` identifies its process, so that one that was cancelled or counted as dead
    does not overwrite a newer one."""

    __tablename__ = "back_tests"

    draft_number: Mapped[int] = mapped_column(
        Number, ForeignKey("drafts.number", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    run: Mapped[str]
    stage: Mapped[str]
    seen_at: Mapped[datetime]  # the last write by its process
    progress: Mapped[dict[str, Any]] = mapped_column("told")  # the name of the column since the first version
