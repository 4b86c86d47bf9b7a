"""Groups of incidents, and what was decided about them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, false
from sqlalchemy.orm import Mapped, mapped_column

from torchtriage.storage.tables.base import Base, Number


class GroupRow(Base):
    """Incidents of one cause. `count` is kept with every change of its incidents, in the same transaction.

    A group that was merged into another keeps its fingerprints, so that the merge can be undone; its incidents are the
    other's. `came_from` is the group, there or gone, whose incidents went to several, this one among them.
    `provisional`: made while it was not known yet if it is an older one under a new fingerprint.
    """

    __tablename__ = "groups"
    __table_args__ = (Index("ix_groups_last_seen", "last_seen", "number"), {"sqlite_autoincrement": True})

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    status: Mapped[str]
    count: Mapped[int] = mapped_column(BigInteger)
    signature: Mapped[str | None]
    title: Mapped[str | None]
    entry: Mapped[str | None] = mapped_column(index=True)
    outcome: Mapped[str]
    first_seen: Mapped[datetime]
    last_seen: Mapped[datetime]
    resolved_at: Mapped[datetime | None]
    regressed_at: Mapped[datetime | None]
    owner: Mapped[str | None]
    note: Mapped[str | None]
    gpu_hours: Mapped[float | None]
    muted_until: Mapped[datetime | None]
    told_count: Mapped[int | None] = mapped_column(BigInteger)  # the highest threshold that people were told of
    told_gpu_hours: Mapped[float | None]
    merged_into: Mapped[int | None] = mapped_column(Number, ForeignKey("groups.number"), index=True)
    came_from: Mapped[int | None] = mapped_column(Number)
    provisional: Mapped[bool] = mapped_column(default=False, server_default=false())


class FingerprintRow(Base):
    """Which group a fingerprint belongs to, merges aside; a group can have many. `knowledge` is that with which it was
    made, or its logs were last looked at for where they belong now."""

    __tablename__ = "fingerprints"

    fingerprint: Mapped[str] = mapped_column(primary_key=True)
    group_number: Mapped[int] = mapped_column(Number, ForeignKey("groups.number", ondelete="CASCADE"), index=True)
    knowledge: Mapped[str | None]


class SuccessionRow(Base):
    """Logs of one fingerprint have another under later knowledge. Where `heir`, the later one was given its group."""

    __tablename__ = "successions"

    fingerprint: Mapped[str] = mapped_column(primary_key=True)
    successor: Mapped[str] = mapped_column(primary_key=True, index=True)
    heir: Mapped[bool]


class GoneGroupRow(Base):
    """The number of a group that is no more, and the group that its incidents went to."""

    __tablename__ = "gone_groups"

    number: Mapped[int] = mapped_column(Number, primary_key=True, autoincrement=False)
    group_number: Mapped[int] = mapped_column(Number, ForeignKey("groups.number", ondelete="CASCADE"), index=True)


class SplitRow(Base):
    """Incidents of this fingerprint in which `field` is `value` have a fingerprint of their own."""

    __tablename__ = "splits"

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    fingerprint: Mapped[str] = mapped_column(index=True)
    field: Mapped[str]
    value: Mapped[str]
