"""The queue of many machines: on Postgres the tables of procrastinate 3.10, on SQLite nothing."""

from __future__ import annotations

from alembic import op
from procrastinate.schema import SchemaManager

revision = "0003"
down_revision = "0002"

_DROP = """
DO $$
DECLARE gone record;
BEGIN
    FOR gone IN SELECT tablename AS name FROM pg_tables
        WHERE schemaname = current_schema AND tablename LIKE 'procrastinate\\_%'
    LOOP EXECUTE format('DROP TABLE %I CASCADE', gone.name); END LOOP;
    FOR gone IN SELECT oid::regprocedure AS name FROM pg_proc
        WHERE pronamespace = current_schema::regnamespace AND proname LIKE 'procrastinate\\_%'
    LOOP EXECUTE 'DROP FUNCTION ' || gone.name || ' CASCADE'; END LOOP;
    FOR gone IN SELECT oid::regtype AS name FROM pg_type
        WHERE typnamespace = current_schema::regnamespace AND typname LIKE 'procrastinate\\_%'
    LOOP EXECUTE 'DROP TYPE IF EXISTS ' || gone.name || ' CASCADE'; END LOOP;
END;
$$
"""


def upgrade() -> None:
    _run(SchemaManager.get_schema())


def downgrade() -> None:
    _run(_DROP)


def _run(statements: str) -> None:
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        # Several at once, with % in them, which is no placeholder here.
        connection.exec_driver_sql(statements, execution_options={"no_parameters": True})
