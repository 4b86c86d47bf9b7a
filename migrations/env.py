"""Alembic runs this: it migrates on the connection that schema_upgrade gives, or on the one that the settings name."""

from __future__ import annotations

import os
from typing import Any

from alembic import context
from sqlalchemy import Connection

from torchtriage.settings import Settings
from torchtriage.storage.database import connect
from torchtriage.storage.full_text_search import TABLE
from torchtriage.storage.tables import Base


def _is_ours(_item: Any, name: str | None, kind: str, *_: Any) -> bool:
    """The search table differs between databases, and the queue is procrastinate's: Alembic compares neither."""
    return not (kind == "table" and (name or "").startswith((TABLE, "procrastinate_")))


def _run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        include_object=_is_ours,
        render_as_batch=True,  # SQLite can't change a column in place
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()


given: Connection | None = context.config.attributes.get("connection")
if given is not None:
    _run(given)
else:
    engine = connect(Settings.from_environment(os.environ).database, foreign_keys=False)
    with engine.connect().execution_options(writing=True) as opened, opened.begin():
        _run(opened)
