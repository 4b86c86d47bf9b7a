"""The tables of logs that arrive in pieces while their jobs run."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from torchtriage.storage.tables.base import Base, Number


class GatheredJobRow(Base):
    """A job that has sent lines and is not a final incident yet. `bytes` is the uncompressed size of its pieces."""

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
    """Some lines of one stream of such a job, compressed. `head`: part of the job's beginning, which is never dropped.
    `size`: uncompressed bytes."""

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
