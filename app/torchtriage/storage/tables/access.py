"""The tables of tokens and of the audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from torchtriage.storage.tables.base import Base, Number


class TokenRow(Base):
    """A token. It is found by the sha256 of its secret."""

    __tablename__ = "tokens"
    __table_args__ = ({"sqlite_autoincrement": True},)

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    sha256: Mapped[str] = mapped_column(unique=True)
    name: Mapped[str]
    scopes: Mapped[str]  # separated by blanks
    session: Mapped[bool]
    begun_with: Mapped[int | None] = mapped_column(Number)  # if this is a session: the token used to log in
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class ChangeRow(Base):
    """One record of the audit log. Rows are never changed or deleted."""

    __tablename__ = "changes"
    __table_args__ = (
        Index("ix_changes_subject", "subject", "number"),
        Index("ix_changes_by", "by", "number"),
        {"sqlite_autoincrement": True},
    )

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    at: Mapped[datetime]
    by: Mapped[str]
    action: Mapped[str]
    subject: Mapped[str]
    detail: Mapped[dict[str, Any]]
