"""The tables. Rows of these classes never leave app.storage; migrations/ builds what stands here."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar

from sqlalchemy import JSON, BigInteger, DateTime, Dialect, ForeignKey, Index, Integer, MetaData, Text, TypeDecorator
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

# SQLite gives out numbers by itself only for INTEGER.
Number = BigInteger().with_variant(Integer(), "sqlite")


class Moment(TypeDecorator[datetime]):
    """A point in time, in UTC; SQLite, which knows no time zones, keeps it without."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return value.astimezone(UTC) if value else None

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "pk": "pk_%(table_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        datetime: Moment(),
        str: Text(),
        dict[str, Any]: JSON(none_as_null=True),
    }


class GroupRow(Base):
    """Incidents of one cause. `count` is kept with every change of its incidents, in the same transaction.

    A group that was merged into another keeps its fingerprints, so that the merge can be undone; its incidents are the
    other's.
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
    merged_into: Mapped[int | None] = mapped_column(Number, ForeignKey("groups.number"), index=True)


class FingerprintRow(Base):
    """Which group a fingerprint belongs to, merges aside; a group can have many."""

    __tablename__ = "fingerprints"

    fingerprint: Mapped[str] = mapped_column(primary_key=True)
    group_number: Mapped[int] = mapped_column(Number, ForeignKey("groups.number", ondelete="CASCADE"), index=True)


class SplitRow(Base):
    """Incidents of this fingerprint in which `field` is `value` have a fingerprint of their own."""

    __tablename__ = "splits"

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    fingerprint: Mapped[str] = mapped_column(index=True)
    field: Mapped[str]
    value: Mapped[str]


class IncidentRow(Base):
    """One stored log with its verdict. `request` is what makes a repeated request the same one."""

    __tablename__ = "incidents"
    __table_args__ = (
        Index("ix_incidents_group_number", "group_number", "number"),
        Index("ix_incidents_state", "state", "number"),
        {"sqlite_autoincrement": True},
    )

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    request: Mapped[str] = mapped_column(unique=True)
    received_at: Mapped[datetime] = mapped_column(index=True)
    state: Mapped[str]
    tries: Mapped[int] = mapped_column(default=0)
    job: Mapped[dict[str, Any]]
    cluster: Mapped[str | None] = mapped_column(index=True)
    user: Mapped[str | None] = mapped_column(index=True)
    log_sha256: Mapped[str]
    triaged_at: Mapped[datetime | None]
    failure: Mapped[str | None]
    verdict: Mapped[dict[str, Any] | None]
    outcome: Mapped[str | None]
    entry: Mapped[str | None] = mapped_column(index=True)
    host: Mapped[str | None] = mapped_column(index=True)
    hardware: Mapped[bool | None]
    gpu_hours: Mapped[float | None]
    knowledge: Mapped[str | None] = mapped_column(index=True)
    fingerprint: Mapped[str | None] = mapped_column(index=True)
    group_number: Mapped[int | None] = mapped_column(Number, ForeignKey("groups.number", ondelete="SET NULL"))

    files: Mapped[list[FileRow]] = relationship(order_by="FileRow.position", lazy="raise")
    group: Mapped[GroupRow | None] = relationship(lazy="raise")
    feedback: Mapped[list[FeedbackRow]] = relationship(order_by="FeedbackRow.number", lazy="raise")


class FileRow(Base):
    """One file of an incident's log; its bytes are in the blob store under `sha256`."""

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
    """A verdict that a newer one, of other knowledge, replaced."""

    __tablename__ = "earlier_verdicts"

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    incident_number: Mapped[int] = mapped_column(Number, ForeignKey("incidents.number", ondelete="CASCADE"), index=True)
    verdict: Mapped[dict[str, Any]]
    triaged_at: Mapped[datetime | None]
    replaced_at: Mapped[datetime]


class FeedbackRow(Base):
    """What somebody said of an incident's verdict."""

    __tablename__ = "feedback"

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    incident_number: Mapped[int] = mapped_column(Number, ForeignKey("incidents.number", ondelete="CASCADE"), index=True)
    about: Mapped[str | None] = mapped_column(index=True)  # the entry that the verdict named
    verdict: Mapped[str]
    entry: Mapped[str | None]
    note: Mapped[str | None]
    by: Mapped[str]
    at: Mapped[datetime]


class TokenRow(Base):
    """A token, known by the sha256 of its secret."""

    __tablename__ = "tokens"
    __table_args__ = ({"sqlite_autoincrement": True},)

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    sha256: Mapped[str] = mapped_column(unique=True)
    name: Mapped[str]
    scopes: Mapped[str]  # parted by blanks
    session: Mapped[bool]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class ChangeRow(Base):
    """One line of the trail of changes; rows are only ever added."""

    __tablename__ = "changes"
    __table_args__ = (Index("ix_changes_subject", "subject", "number"), {"sqlite_autoincrement": True})

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    at: Mapped[datetime]
    by: Mapped[str]
    action: Mapped[str]
    subject: Mapped[str]
    detail: Mapped[dict[str, Any]]
