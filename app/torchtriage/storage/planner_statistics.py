"""The database's statistics about its tables, which its query planner uses.

SQLite updates them only on request. Postgres updates them itself, but not at once after large changes.
"""

from __future__ import annotations

from sqlalchemy import text

from torchtriage.storage.database import Database

_LOOKED_AT = 1000  # rows per index that SQLite samples: enough to see which filter has the fewest
_TABLES = ("incidents", "incident_files", "incident_search", "groups", "counts", "host_counts", "feedback")


def refresh(database: Database) -> None:
    """Updates the statistics of all tables. Raises StorageUnavailable."""
    with database.transaction(durable=False) as session:
        if database.is_sqlite:
            session.execute(text(f"PRAGMA analysis_limit={_LOOKED_AT}"))
            session.execute(text("ANALYZE"))
        else:
            session.execute(text(f"ANALYZE {', '.join(_TABLES)}"))
