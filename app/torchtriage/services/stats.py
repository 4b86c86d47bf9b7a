"""Counts failures by host and over time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from torchtriage.domain.dashboard import OTHERS
from torchtriage.domain.stats import Bucket, HostRecord, Stat, StatsFilter
from torchtriage.errors import NotFound
from torchtriage.services.service import Service
from torchtriage.services.user_text import NUL
from torchtriage.storage import hosts as stored
from torchtriage.storage import stats
from torchtriage.storage.pagination import Page


def count(service: Service, wanted: StatsFilter, by: str, bucket: Bucket, cursor: str | None = None) -> Page[Stat]:
    """Returns incidents and GPU hours lost per time bucket and value of `by`, oldest first. A page has as many whole
    days as fit. Raises BadCursor."""
    with service.database.reading() as session:
        return stats.counted(session, wanted, by, bucket, cursor)


def hosts(service: Service, wanted: StatsFilter, limit: int) -> list[HostRecord]:
    """Returns hosts on which runs failed first, most failures of the host itself first."""
    with service.database.reading() as session:
        return stored.hosts(session, wanted, limit)


def host_days(service: Service, name: str, days: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Returns, for consecutive days (UTC), the number of failures of the host itself and of others."""
    with service.database.reading() as session:
        found = stored.by_day(session, name, date.fromisoformat(days[0]), date.fromisoformat(days[-1]))
    both = [found.get(day, (0, 0)) for day in days]
    return {"hardware": tuple(own for _, own in both), OTHERS: tuple(count - own for count, own in both)}


def host(service: Service, name: str) -> HostRecord:
    """Returns one host, over all time. Raises NotFound if nothing failed on it."""
    with service.database.reading() as session:
        found = None if NUL in name else stored.host(session, StatsFilter(), name)
    if found is None:
        raise NotFound("no incident on this host", host=name[:100])
    return found
