"""Recomputes all counts from the incidents, after other programs changed the data.

Each function is one step of the caller's transaction.
"""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.orm import Session

from torchtriage.storage.daily_counts import COST
from torchtriage.storage.periods import FIRST_DAY

_MONTH = "period / 100"
_VERDICTS = (
    "SELECT {day}, false, coalesce(cluster, ''), outcome, coalesce(entry, ''), count(*), "
    "coalesce(sum(CAST(round({hours}) AS BIGINT)), 0) FROM incidents WHERE outcome IS NOT NULL GROUP BY 1, 3, 4, 5"
)
_OF_ALL_CLUSTERS = (
    "SELECT period, true, '', outcome, entry, sum(count), sum(cost) FROM counts GROUP BY period, outcome, entry"
)
_OF_MONTHS = (
    f"SELECT {_MONTH}, every, cluster, outcome, entry, sum(count), sum(cost) FROM counts "
    f"WHERE period > {FIRST_DAY} GROUP BY 1, 2, 3, 4, 5"
)
_HOSTS = (
    "SELECT {day}, host, coalesce(cluster, ''), count(*), sum(CASE WHEN hardware THEN 1 ELSE 0 END), "
    "coalesce(sum(CAST(round({hours}) AS BIGINT)), 0) FROM incidents "
    "WHERE outcome IN ('explained', 'unexplained') AND host IS NOT NULL GROUP BY 1, 2, 3"
)
_HOSTS_OF_MONTHS = (
    f"SELECT {_MONTH}, host, cluster, sum(count), sum(hardware), sum(cost) FROM host_counts "
    f"WHERE period > {FIRST_DAY} GROUP BY 1, 2, 3"
)
_DAYS = {
    "sqlite": "CAST(replace(substr(received_at, 1, 10), '-', '') AS INTEGER)",
    "postgresql": "CAST(to_char(timezone('UTC', received_at), 'YYYYMMDD') AS INTEGER)",
}


def recount(session: Session) -> int:
    """Replaces all counts. Returns the number of incidents with a verdict."""
    dialect = session.get_bind().dialect.name
    if dialect == "postgresql":  # on SQLite, only one transaction writes at a time
        session.execute(text("LOCK TABLE incidents IN SHARE MODE"))
    expressions = {"day": _DAYS[dialect], "hours": f"gpu_hours * {COST}"}
    for table, *queries in (
        ("counts", _VERDICTS, _OF_ALL_CLUSTERS, _OF_MONTHS),
        ("host_counts", _HOSTS, _HOSTS_OF_MONTHS),
    ):
        session.execute(text(f"DELETE FROM {table}"))
        for query in queries:
            # Sorted by time, as counts usually arrive, because rows stored together are read faster.
            session.execute(text(f"INSERT INTO {table} {query.format(**expressions)} ORDER BY 1"))
    total = text(f"SELECT coalesce(sum(count), 0) FROM counts WHERE every AND period > {FIRST_DAY}")
    return int(session.execute(total).scalar_one())
