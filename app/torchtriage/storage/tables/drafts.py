"""Entries that people write in the page."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from torchtriage.storage.tables.base import Base, Number


class DraftRow(Base):
    """One draft. `document` is what was typed; `revision` grows with each change; `expect` is what the draft says about
    its example, in both languages, as of this revision. `tracked_to` is the number of the last incident that `tracking`
    has counted."""

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
    """The back-test of a draft that was begun last. `run` is whose it is: one that was cancelled, or thought dead, must
    not write over another's."""

    __tablename__ = "back_tests"

    draft_number: Mapped[int] = mapped_column(
        Number, ForeignKey("drafts.number", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    run: Mapped[str]
    stage: Mapped[str]
    seen_at: Mapped[datetime]  # the last sign of life of its worker
    told: Mapped[dict[str, Any]]
