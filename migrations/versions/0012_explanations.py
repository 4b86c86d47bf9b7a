"""What a language model says is kept for an incident, claim by claim; what it said of groups was checked by nothing."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.drop_table("suggestions")
    op.create_table(
        "explanations",
        sa.Column("incident_number", NUMBER, nullable=False),
        sa.Column("document", sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["incident_number"], ["incidents.number"], name="fk_explanations_incident_number", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("incident_number", name="pk_explanations"),
    )
    # What still waits to be asked about groups is asked by nobody any more.
    op.execute("DELETE FROM outbox WHERE kind = 'suggestion'")


def downgrade() -> None:
    op.execute("DELETE FROM outbox WHERE kind = 'explanation'")
    op.drop_table("explanations")
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
