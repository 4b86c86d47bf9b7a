"""What clients tell of runs at their end is kept."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "run_summaries",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("incident_number", NUMBER, nullable=True),
        sa.Column("job_name", sa.Text(), nullable=False),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("document", sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["incident_number"], ["incidents.number"], name="fk_run_summaries_incident_number", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("number", name="pk_run_summaries"),
        sa.UniqueConstraint("incident_number", name="uq_run_summaries_incident_number"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_run_summaries_job_name", "run_summaries", ["job_name", "cluster", "at"])


def downgrade() -> None:
    op.drop_table("run_summaries")
