"""What is to be sent, Slack's threads and requests; muted groups, and the thresholds that they were told at."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)

GROUPS: dict[str, Any] = {"muted_until": MOMENT, "told_count": sa.BigInteger(), "told_gpu_hours": sa.Double()}


def upgrade() -> None:
    for name, kind in GROUPS.items():
        op.add_column("groups", sa.Column(name, kind))
    op.create_table(
        "outbox",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("incident_number", NUMBER),
        sa.Column("group_number", NUMBER),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("put_at", MOMENT, nullable=False),
        sa.Column("due_at", MOMENT, nullable=False),
        sa.Column("ended_at", MOMENT),
        sa.Column("problem", sa.Text()),
        _of("outbox", "incident", "CASCADE"),
        _of("outbox", "group", "CASCADE"),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_outbox")),
        sa.UniqueConstraint("key", name=op.f("uq_outbox_key")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_outbox_state", "outbox", ["state", "due_at"])
    for name in ("incident_number", "group_number", "ended_at"):
        op.create_index(op.f(f"ix_outbox_{name}"), "outbox", [name])
    op.create_table(
        "outbox_lanes",
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("free_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("channel", name=op.f("pk_outbox_lanes")),
    )
    _slack()


def downgrade() -> None:
    for gone in ("slack_requests", "slack_threads", "outbox_lanes", "outbox"):
        op.drop_table(gone)
    for name in GROUPS:
        op.drop_column("groups", name)


def _slack() -> None:
    op.create_table(
        "slack_threads",
        sa.Column("group_number", NUMBER, nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("slack_channel", sa.Text(), nullable=False),
        sa.Column("ts", sa.Text(), nullable=False),
        sa.Column("incident_number", NUMBER),
        _of("slack_threads", "group", "CASCADE"),
        _of("slack_threads", "incident", "SET NULL"),
        sa.PrimaryKeyConstraint("group_number", "channel", name=op.f("pk_slack_threads")),
    )
    op.create_index(op.f("ix_slack_threads_incident_number"), "slack_threads", ["incident_number"])
    op.create_table(
        "slack_requests",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_slack_requests")),
    )
    op.create_index(op.f("ix_slack_requests_at"), "slack_requests", ["at"])


def _of(table: str, what: str, gone: str) -> sa.ForeignKeyConstraint:
    column = f"{what}_number"
    return sa.ForeignKeyConstraint([column], [f"{what}s.number"], name=op.f(f"fk_{table}_{column}"), ondelete=gone)
