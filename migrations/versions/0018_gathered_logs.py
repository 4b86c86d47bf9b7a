"""Logs that come in pieces while their jobs run are kept until they are incidents."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "gathered_jobs",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("job", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("since", MOMENT, nullable=False),
        sa.Column("last_at", MOMENT, nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("lines", sa.BigInteger(), nullable=False),
        sa.Column("dropped", sa.BigInteger(), nullable=False),
        sa.Column("ended", sa.Boolean(), nullable=False),
        sa.Column("reported_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("number", name="pk_gathered_jobs"),
        sa.UniqueConstraint("key", name="uq_gathered_jobs_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_gathered_jobs_last_at", "gathered_jobs", ["last_at"])
    op.create_table(
        "gathered_pieces",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("job_number", NUMBER, nullable=False),
        sa.Column("stream", sa.Text(), nullable=False),
        sa.Column("began", sa.BigInteger(), nullable=False),
        sa.Column("lines", sa.Integer(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("head", sa.Boolean(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_number"], ["gathered_jobs.number"], name="fk_gathered_pieces_job_number", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("number", name="pk_gathered_pieces"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_gathered_pieces_job_number", "gathered_pieces", ["job_number"])


def downgrade() -> None:
    op.drop_table("gathered_pieces")
    op.drop_table("gathered_jobs")
