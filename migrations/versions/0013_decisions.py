"""What is decided about failed attempts is kept, with how good it turned out to be."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "decisions",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("incident_number", NUMBER, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.Column("cluster", sa.Text(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("grade", sa.Text(), nullable=True),
        sa.Column("graded_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("graded_by", NUMBER, nullable=True),
        sa.Column("document", sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["incident_number"], ["incidents.number"], name="fk_decisions_incident_number", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("number", name="pk_decisions"),
        sa.UniqueConstraint("incident_number", name="uq_decisions_incident_number"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_decisions_job_id", "decisions", ["job_id", "cluster", "attempt"])
    op.create_index("ix_decisions_action", "decisions", ["action", "number"])
    op.create_index("ix_decisions_grade", "decisions", ["grade", "number"])


def downgrade() -> None:
    op.drop_table("decisions")
