"""What a language model said of groups that no entry names."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "suggestions",
        sa.Column("group_number", NUMBER, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["group_number"], ["groups.number"], name="fk_suggestions_group_number", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("group_number", name="pk_suggestions"),
    )


def downgrade() -> None:
    op.drop_table("suggestions")
