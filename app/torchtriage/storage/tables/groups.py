"""The tables of groups and their fingerprints."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, false
from sqlalchemy.orm import Mapped, mapped_column

from torchtriage.storage.tables.base import Base, Number


class GroupRow(Base):
    """Incidents of one cause. `count` is updated with every change of its incidents, in the same transaction.

    A group merged into another keeps its fingerprints, so that the merge can be undone; its incidents belong to the
    other. `came_from` is the group, possibly deleted, whose incidents were divided among several including this one.
    `provisional`: it was made before it was known whether it is an older group under a new fingerprint.
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
    told_count: Mapped[int | None] = mapped_column(BigInteger)  # the highest threshold that was alerted
    told_gpu_hours: Mapped[float | None]
    merged_into: Mapped[int | None] = mapped_column(Number, ForeignKey("groups.number"), index=True)
    came_from: Mapped[int | None] = mapped_column(Number)
    provisional: Mapped[bool] = mapped_column(default=False, server_default=false())


class FingerprintRow(Base):
    """The group of a fingerprint, without regard to merges. A group can have many. `knowledge` is the version with
    which the fingerprint was made or last checked."""

    __tablename__ = "fingerprints"

    fingerprint: Mapped[str] = mapped_column(primary_key=True)
    group_number: Mapped[int] = mapped_column(Number, ForeignKey("groups.number", ondelete="CASCADE"), index=True)
    knowledge: Mapped[str | None]


class SuccessionRow(Base):
    """Logs of `fingerprint` have the fingerprint `successor` with later knowledge. `heir`: the group continued under
    it."""

    __tablename__ = "successions"

    fingerprint: Mapped[str] = mapped_column(primary_key=True)
    successor: Mapped[str] = mapped_column(primary_key=True, index=True)
    heir: Mapped[bool]


class GoneGroupRow(Base):
    """The number of a deleted group, and the group that has its incidents now."""

    __tablename__ = "gone_groups"

    number: Mapped[int] = mapped_column(Number, primary_key=True, autoincrement=False)
    group_number: Mapped[int] = mapped_column(Number, ForeignKey("groups.number", ondelete="CASCADE"), index=True)


class SplitRow(Base):
    """A split: incidents of this fingerprint whose `field` is `value` have a separate fingerprint."""

    __tablename__ = "splits"

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    fingerprint: Mapped[str] = mapped_column(index=True)
    field: Mapped[str]
    value: Mapped[str]
