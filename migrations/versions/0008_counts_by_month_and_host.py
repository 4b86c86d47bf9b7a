"""Counts by day and month, of each cluster and of all, and of each host; what was said of verdicts in order of time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_OLD_HARDWARE = ["received_at", "host", "cluster"]
# Keep in step with torchtriage.storage.recount.
_FILL = (
    (
        "counts",
        "SELECT {day}, false, coalesce(cluster, ''), outcome, coalesce(entry, ''), count(*), "
        "coalesce(sum(CAST(round({hours}) AS BIGINT)), 0) FROM incidents WHERE outcome IS NOT NULL GROUP BY 1, 3, 4, 5",
    ),
    (
        "counts",
        "SELECT period, true, '', outcome, entry, sum(count), sum(cost) FROM counts GROUP BY period, outcome, entry",
    ),
    (
        "counts",
        "SELECT period / 100, every, cluster, outcome, entry, sum(count), sum(cost) FROM counts GROUP BY 1, 2, 3, 4, 5",
    ),
    (
        "host_counts",
        "SELECT {day}, host, coalesce(cluster, ''), count(*), sum(CASE WHEN hardware THEN 1 ELSE 0 END), "
        "coalesce(sum(CAST(round({hours}) AS BIGINT)), 0) FROM incidents "
        "WHERE outcome <> 'healthy' AND host IS NOT NULL GROUP BY 1, 2, 3",
    ),
    (
        "host_counts",
        "SELECT period / 100, host, cluster, sum(count), sum(hardware), sum(cost) FROM host_counts GROUP BY 1, 2, 3",
    ),
)


def upgrade() -> None:
    _tables()
    sqlite = op.get_bind().dialect.name == "sqlite"
    day = (
        "CAST(replace(substr(received_at, 1, 10), '-', '') AS INTEGER)"
        if sqlite
        else "CAST(to_char(timezone('UTC', received_at), 'YYYYMMDD') AS INTEGER)"
    )
    for table, query in _FILL:
        # In the order of time, as they come later too: what lies together is read together.
        op.execute(f"INSERT INTO {table} {query.format(day=day, hours='gpu_hours * 10000')} ORDER BY 1")
    op.drop_table("daily_counts")
    op.drop_index("ix_incidents_hardware", "incidents")
    op.create_index("ix_feedback_at", "feedback", ["at", "about", "verdict", "incident_number"])


def downgrade() -> None:
    op.drop_index("ix_feedback_at", "feedback")
    hardware = sa.text("hardware")
    op.create_index(
        "ix_incidents_hardware", "incidents", _OLD_HARDWARE, postgresql_where=hardware, sqlite_where=hardware
    )
    op.create_table(
        "daily_counts",
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("day", "cluster", "outcome", "entry")),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("gpu_hours", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("day", "cluster", "outcome", "entry", name=op.f("pk_daily_counts")),
    )
    sqlite = op.get_bind().dialect.name == "sqlite"
    day = "substr(received_at, 1, 10)" if sqlite else "to_char(timezone('UTC', received_at), 'YYYY-MM-DD')"
    op.execute(
        f"INSERT INTO daily_counts SELECT {day}, coalesce(cluster, ''), outcome, coalesce(entry, ''), count(*), "
        "coalesce(sum(gpu_hours), 0) FROM incidents WHERE outcome IS NOT NULL GROUP BY 1, 2, 3, 4"
    )
    for gone in ("host_counts", "counts"):
        op.drop_table(gone)


def _tables() -> None:
    op.create_table(
        "counts",
        sa.Column("period", sa.Integer(), nullable=False),
        sa.Column("every", sa.Boolean(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("cluster", "outcome", "entry")),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("count", "cost")),
        sa.PrimaryKeyConstraint("period", "every", "cluster", "outcome", "entry", name=op.f("pk_counts")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "host_counts",
        sa.Column("period", sa.Integer(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("host", "cluster")),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("count", "hardware", "cost")),
        sa.PrimaryKeyConstraint("period", "host", "cluster", name=op.f("pk_host_counts")),
        sqlite_with_rowid=False,
    )
