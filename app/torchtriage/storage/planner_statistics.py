"""The database's statistics about its tables, on which its query plans rest.

SQLite looks only when it is told to. Postgres looks by itself, but not at once after much was put in.
"""

from __future__ import annotations

from sqlalchemy import text

from torchtriage.storage.database import Database

_LOOKED_AT = 1000  # rows of each index that SQLite looks at: enough to tell which filter has the fewest
_TABLES = ("incidents", "incident_files", "incident_search", "groups", "counts", "host_counts", "feedback")


def refresh(database: Database) -> None:
    """Looks at all tables again. Raises StorageUnavailable."""
    with database.transaction(durable=False) as session:
        if database.is_sqlite:
            session.execute(text(f"PRAGMA analysis_limit={_LOOKED_AT}"))
            session.execute(text("ANALYZE"))
        else:
            session.execute(text(f"ANALYZE {', '.join(_TABLES)}"))
