"""Which case of an entry answers an incident; verdicts of before say it in their JSON only, which is read there."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
KNOWN = sa.text('"case" IS NOT NULL')


def upgrade() -> None:
    op.add_column("incidents", sa.Column("case", sa.Text(), nullable=True))
    op.create_index(
        "ix_incidents_case", "incidents", ["entry", "case", "number"], postgresql_where=KNOWN, sqlite_where=KNOWN
    )


def downgrade() -> None:
    op.drop_index("ix_incidents_case", "incidents")
    op.drop_column("incidents", "case")
