"""Sessions end with the token that they were begun with; the trail of changes can be asked for by name."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("tokens", sa.Column("begun_with", NUMBER, nullable=True))
    # Nobody knows what those that are open were begun with.
    op.execute("DELETE FROM tokens WHERE session")
    op.create_index("ix_changes_by", "changes", ["by", "number"])


def downgrade() -> None:
    op.drop_index("ix_changes_by", "changes")
    op.drop_column("tokens", "begun_with")
