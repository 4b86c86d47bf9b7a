"""How far the back-test of a draft is, and what it found, is kept."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "back_tests",
        sa.Column("draft_number", NUMBER, autoincrement=False, nullable=False),
        sa.Column("run", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("told", sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["draft_number"], ["drafts.number"], name="fk_back_tests_draft_number", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("draft_number", name="pk_back_tests"),
    )


def downgrade() -> None:
    op.drop_table("back_tests")
