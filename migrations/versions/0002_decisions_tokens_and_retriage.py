"""What people decide about groups and verdicts, tokens, the trail of changes, hosts, cost, and replaced verdicts."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)

GROUPS: dict[str, Any] = {
    "resolved_at": MOMENT,
    "regressed_at": MOMENT,
    "owner": sa.Text(),
    "note": sa.Text(),
    "gpu_hours": sa.Double(),
    "merged_into": NUMBER,
}
INCIDENTS: dict[str, Any] = {"hardware": sa.Boolean(), "gpu_hours": sa.Double(), "knowledge": sa.Text()}


def upgrade() -> None:
    # On SQLite a table that gets a foreign key is built anew, with what is in it.
    with op.batch_alter_table("groups", table_kwargs={"sqlite_autoincrement": True}) as table:
        for name, kind in GROUPS.items():
            table.add_column(sa.Column(name, kind))
        table.create_foreign_key(op.f("fk_groups_merged_into"), "groups", ["merged_into"], ["number"])
    op.create_index(op.f("ix_groups_merged_into"), "groups", ["merged_into"])
    for name, kind in INCIDENTS.items():
        op.add_column("incidents", sa.Column(name, kind))
    for name in ("knowledge", "fingerprint"):
        op.create_index(op.f(f"ix_incidents_{name}"), "incidents", [name])
    _of_incidents(
        "earlier_verdicts",
        sa.Column("verdict", sa.JSON(), nullable=False),
        sa.Column("triaged_at", MOMENT),
        sa.Column("replaced_at", MOMENT, nullable=False),
    )
    _of_incidents(
        "feedback",
        sa.Column("about", sa.Text()),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("entry", sa.Text()),
        sa.Column("note", sa.Text()),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
    )
    op.create_index(op.f("ix_feedback_about"), "feedback", ["about"])
    op.create_table(
        "splits",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("field", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_splits")),
    )
    op.create_index(op.f("ix_splits_fingerprint"), "splits", ["fingerprint"])
    _tokens_and_changes()


def downgrade() -> None:
    for gone in ("changes", "tokens", "splits", "feedback", "earlier_verdicts"):
        op.drop_table(gone)
    for name in ("knowledge", "fingerprint"):
        op.drop_index(op.f(f"ix_incidents_{name}"), "incidents")
    for name in INCIDENTS:
        op.drop_column("incidents", name)
    op.drop_index(op.f("ix_groups_merged_into"), "groups")
    with op.batch_alter_table("groups", table_kwargs={"sqlite_autoincrement": True}) as table:
        table.drop_constraint(op.f("fk_groups_merged_into"), type_="foreignkey")
        for name in GROUPS:
            table.drop_column(name)


def _of_incidents(name: str, *columns: sa.Column[object]) -> None:
    op.create_table(
        name,
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("incident_number", NUMBER, nullable=False),
        *columns,
        sa.ForeignKeyConstraint(
            ["incident_number"], ["incidents.number"], name=op.f(f"fk_{name}_incident_number"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("number", name=op.f(f"pk_{name}")),
    )
    op.create_index(op.f(f"ix_{name}_incident_number"), name, ["incident_number"])


def _tokens_and_changes() -> None:
    op.create_table(
        "tokens",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("session", sa.Boolean(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT),
        sa.Column("last_used_at", MOMENT),
        sa.Column("revoked_at", MOMENT),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_tokens")),
        sa.UniqueConstraint("sha256", name=op.f("uq_tokens_sha256")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "changes",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_changes")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_changes_subject", "changes", ["subject", "number"])
