"""The queue of many machines: on Postgres the tables of procrastinate 3.10, on SQLite nothing."""

from __future__ import annotations

from alembic import op

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
    if _is_postgres():
        from procrastinate.schema import SchemaManager  # here, as SQLite works without the extra `postgres`

        _run(SchemaManager.get_schema())


def downgrade() -> None:
    if _is_postgres():
        _run(_DROP)


def _is_postgres() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def _run(statements: str) -> None:
    # Several at once, with % in them, which is no placeholder here.
    op.get_bind().exec_driver_sql(statements, execution_options={"no_parameters": True})
