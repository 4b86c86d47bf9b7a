"""Incidents, their files, groups, fingerprints and the search over incidents."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    _groups()
    _incidents()
    _search()


def downgrade() -> None:
    for table in ("incident_search", "incident_files", "incidents", "fingerprints", "groups"):
        op.drop_table(table)


def _groups() -> None:
    op.create_table(
        "groups",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("signature", sa.Text()),
        sa.Column("title", sa.Text()),
        sa.Column("entry", sa.Text()),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("first_seen", MOMENT, nullable=False),
        sa.Column("last_seen", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_groups")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_groups_last_seen", "groups", ["last_seen", "number"])
    op.create_index(op.f("ix_groups_entry"), "groups", ["entry"])
    op.create_table(
        "fingerprints",
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("group_number", NUMBER, nullable=False),
        sa.ForeignKeyConstraint(
            ["group_number"], ["groups.number"], name=op.f("fk_fingerprints_group_number"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("fingerprint", name=op.f("pk_fingerprints")),
    )
    op.create_index(op.f("ix_fingerprints_group_number"), "fingerprints", ["group_number"])


def _incidents() -> None:
    op.create_table(
        "incidents",
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("received_at", MOMENT, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("job", sa.JSON(), nullable=False),
        sa.Column("cluster", sa.Text()),
        sa.Column("user", sa.Text()),
        sa.Column("log_sha256", sa.Text(), nullable=False),
        sa.Column("triaged_at", MOMENT),
        sa.Column("failure", sa.Text()),
        sa.Column("verdict", sa.JSON()),
        sa.Column("outcome", sa.Text()),
        sa.Column("entry", sa.Text()),
        sa.Column("host", sa.Text()),
        sa.Column("fingerprint", sa.Text()),
        sa.Column("group_number", NUMBER),
        sa.ForeignKeyConstraint(
            ["group_number"], ["groups.number"], name=op.f("fk_incidents_group_number"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_incidents")),
        sa.UniqueConstraint("request", name=op.f("uq_incidents_request")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_incidents_group_number", "incidents", ["group_number", "number"])
    op.create_index("ix_incidents_state", "incidents", ["state", "number"])
    for column in ("received_at", "cluster", "user", "entry", "host"):
        op.create_index(op.f(f"ix_incidents_{column}"), "incidents", [column])
    op.create_table(
        "incident_files",
        sa.Column("incident_number", NUMBER, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("lines", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["incident_number"],
            ["incidents.number"],
            name=op.f("fk_incident_files_incident_number"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("incident_number", "position", name=op.f("pk_incident_files")),
    )
    op.create_index(op.f("ix_incident_files_sha256"), "incident_files", ["sha256"])


def _search() -> None:
    # The same two columns on both; words are cut by torchtriage.storage.full_text_search, and taken as they stand.
    if op.get_bind().dialect.name == "sqlite":
        op.execute("CREATE VIRTUAL TABLE incident_search USING fts5(words, tokenize='unicode61 remove_diacritics 0')")
        return
    op.create_table(
        "incident_search", sa.Column("rowid", sa.BigInteger(), primary_key=True), sa.Column("words", sa.Text())
    )
    op.execute(
        "CREATE INDEX ix_incident_search_words ON incident_search "
        "USING gin (array_to_tsvector(string_to_array(words, ' ')))"
    )
