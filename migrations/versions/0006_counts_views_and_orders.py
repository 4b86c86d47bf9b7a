"""Counts by day, saved views, what retries and hosts are counted by, and an index in the order of lists per filter."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)

INCIDENTS: dict[str, Any] = {"job_id": sa.Text(), "attempt": sa.Integer(), "advice": sa.Text()}
FILTERS = ("state", "outcome", "entry", "cluster", "user")
HOST = ["cluster", "outcome", "hardware", "entry", "job_id", "gpu_hours"]
RETRIES = ["cluster", "attempt", "received_at", "outcome", "entry"]
BEFORE = {name: [name] for name in ("received_at", "entry", "cluster", "user", "host")} | {
    "state": ["state", "number"],
    "group_number": ["group_number", "number"],
}
# A string inside of JSON has its quotes escaped, so this is found nowhere but at the key.
ADVICE = "CASE {} END".format(
    " ".join(
        f"WHEN CAST(verdict AS TEXT) LIKE '%\"advice\": \"{advice}\"%' THEN '{advice}'"
        for advice in ("retry", "retry-elsewhere", "fix-first", "none")
    )
)


def upgrade() -> None:
    for name, kind in INCIDENTS.items():
        op.add_column("incidents", sa.Column(name, kind))
    _fill()
    for name in BEFORE:
        op.drop_index(op.f(f"ix_incidents_{name}"), "incidents")
    op.create_index("ix_incidents_received_at", "incidents", ["received_at", "number"])
    for name in (*FILTERS, "group_number"):
        op.create_index(f"ix_incidents_{name}", "incidents", [name, "received_at", "number"])
    op.create_index("ix_incidents_host", "incidents", ["host", "received_at", "number", *HOST])
    op.create_index("ix_incidents_job_id", "incidents", ["job_id", *RETRIES])
    _index_some("hardware", ["received_at", "host", "cluster"], "hardware")
    told = "advice IN ('retry', 'retry-elsewhere') AND job_id IS NOT NULL"
    _index_some("retried", ["received_at", "cluster", "job_id", "attempt", "number", "entry"], told)
    _tables()


def downgrade() -> None:
    for gone in ("views", "daily_counts"):
        op.drop_table(gone)
    for name in ("hardware", "retried", "job_id", "outcome", *BEFORE):
        op.drop_index(f"ix_incidents_{name}", "incidents")
    for name, columns in BEFORE.items():
        op.create_index(op.f(f"ix_incidents_{name}"), "incidents", columns)
    for name in INCIDENTS:
        op.drop_column("incidents", name)


def _index_some(name: str, columns: list[str], condition: str) -> None:
    where = sa.text(condition)
    op.create_index(f"ix_incidents_{name}", "incidents", columns, postgresql_where=where, sqlite_where=where)


def _fill() -> None:
    sqlite = op.get_bind().dialect.name == "sqlite"
    job_id, attempt = (
        ("json_extract(job, '$.job_id')", "json_extract(job, '$.attempt')")
        if sqlite
        else ("job ->> 'job_id'", "CAST(job ->> 'attempt' AS INTEGER)")
    )
    # Keep in step with torchtriage.storage.incidents: a job's id is cut where an index could not hold it.
    op.execute(f"UPDATE incidents SET job_id = substr({job_id}, 1, 64), attempt = {attempt}, advice = {ADVICE}")


def _tables() -> None:
    op.create_table(
        "daily_counts",
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("entry", sa.Text(), nullable=False),
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
    op.create_table(
        "views",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_views")),
        sa.UniqueConstraint("name", name=op.f("uq_views_name")),
        sqlite_autoincrement=True,
    )
