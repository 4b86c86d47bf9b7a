"""Groups that live on under other fingerprints: where each went, and where what is gone now is."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    # Nobody knows of those that are there what today's knowledge says of their logs.
    op.add_column("fingerprints", sa.Column("knowledge", sa.Text(), nullable=True))
    op.create_table(
        "successions",
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("successor", sa.Text(), nullable=False),
        sa.Column("heir", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("fingerprint", "successor", name="pk_successions"),
    )
    op.create_index("ix_successions_successor", "successions", ["successor"])
    op.add_column("groups", sa.Column("came_from", NUMBER, nullable=True))
    op.add_column("groups", sa.Column("provisional", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_table(
        "gone_groups",
        sa.Column("number", NUMBER, autoincrement=False, nullable=False),
        sa.Column("group_number", NUMBER, nullable=False),
        sa.ForeignKeyConstraint(
            ["group_number"], ["groups.number"], name="fk_gone_groups_group_number", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("number", name="pk_gone_groups"),
    )
    op.create_index("ix_gone_groups_group_number", "gone_groups", ["group_number"])


def downgrade() -> None:
    op.drop_table("gone_groups")
    op.drop_column("groups", "provisional")
    op.drop_column("groups", "came_from")
    op.drop_table("successions")
    op.drop_column("fingerprints", "knowledge")
