"""Counts what failed: by host, and over time."""

from __future__ import annotations

from app.domain.stats import Bucket, HostRecord, Stat, StatsFilter
from app.services.service import Service
from app.storage import stats


def count(service: Service, wanted: StatsFilter, by: str, bucket: Bucket) -> list[Stat]:
    """-> incidents and GPU hours lost for each time and value of `by`; the oldest first."""
    with service.database.reading() as session:
        return stats.counted(session, wanted, by, bucket)


def hosts(service: Service, wanted: StatsFilter, limit: int) -> list[HostRecord]:
    """-> hosts on which runs failed first; those that failed for reasons of their own most often come first."""
    with service.database.reading() as session:
        return stats.hosts(session, wanted, limit)
