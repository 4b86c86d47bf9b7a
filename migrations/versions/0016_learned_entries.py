"""Drafts are tracked, and those that were approved are in use."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("drafts", sa.Column("state", sa.Text(), nullable=False, server_default="draft"))
    op.add_column("drafts", sa.Column("approved_by", sa.Text(), nullable=True))
    op.add_column("drafts", sa.Column("approved_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("drafts", sa.Column("tracked_to", NUMBER, nullable=True))
    op.add_column("drafts", sa.Column("tracking", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    for name in ("tracking", "tracked_to", "approved_at", "approved_by", "state"):
        op.drop_column("drafts", name)
