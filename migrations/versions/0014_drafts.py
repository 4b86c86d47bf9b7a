"""Entries that people write in the page are kept."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "drafts",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("entry", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("document", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("expect", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("changed_by", sa.Text(), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("incident_number", NUMBER, nullable=True),
        sa.ForeignKeyConstraint(
            ["incident_number"], ["incidents.number"], name="fk_drafts_incident_number", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("number", name="pk_drafts"),
        sa.UniqueConstraint("entry", name="uq_drafts_entry"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_drafts_incident_number", "drafts", ["incident_number"])


def downgrade() -> None:
    op.drop_table("drafts")
