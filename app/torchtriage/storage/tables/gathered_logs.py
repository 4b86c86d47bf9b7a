"""Logs that come in pieces while their jobs run."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from torchtriage.storage.tables.base import Base, Number


class GatheredJobRow(Base):
    """A job of which lines came, and which is no incident for good yet. `bytes` are those of its pieces, unpacked."""

    __tablename__ = "gathered_jobs"
    __table_args__ = ({"sqlite_autoincrement": True},)

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    key: Mapped[str] = mapped_column(unique=True)
    job: Mapped[dict[str, Any]]
    since: Mapped[datetime]
    last_at: Mapped[datetime] = mapped_column(index=True)
    bytes: Mapped[int] = mapped_column(BigInteger)
    lines: Mapped[int] = mapped_column(BigInteger)
    dropped: Mapped[int] = mapped_column(BigInteger)
    ended: Mapped[bool]
    reported_at: Mapped[datetime | None]


class GatheredPieceRow(Base):
    """Some lines of one writer of such a job, packed. `head`: it is of the beginning, which is kept whatever comes;
    `size`: its bytes, unpacked."""

    __tablename__ = "gathered_pieces"
    __table_args__ = ({"sqlite_autoincrement": True},)

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    job_number: Mapped[int] = mapped_column(Number, ForeignKey("gathered_jobs.number", ondelete="CASCADE"), index=True)
    stream: Mapped[str]
    began: Mapped[int] = mapped_column(BigInteger)
    lines: Mapped[int]
    size: Mapped[int]
    head: Mapped[bool]
    content: Mapped[bytes]
