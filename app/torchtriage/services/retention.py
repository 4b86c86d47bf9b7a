"""Deletes incidents older than the retention settings allow, unless the clock may be wrong."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from torchtriage.errors import NotFound
from torchtriage.services.heartbeats import UPKEEP
from torchtriage.services.incidents import forget_incident
from torchtriage.services.service import Service
from torchtriage.storage import incidents

log = logging.getLogger(__name__)
_BATCH_SIZE = 100  # incidents per read
_APART = timedelta(hours=1)  # maximum change of the clock: more than any system corrects by itself while a service runs
_LATE = timedelta(days=1)  # incidents due for longer than this should have been deleted in earlier rounds
_SHARE = 0.25  # share of all incidents; if more than this are late, none is deleted without confirmation


def _since_boot() -> float:
    """Returns seconds of a clock that nobody can set. They include sleep if the system supports it."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Clock:
    """Measures by how much the system's clock was set since this object was made."""

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = _since_boot) -> None:
        self._wall, self._steady = wall, steady
        self._began = wall() - steady()

    def was_set_by(self) -> timedelta:
        """Returns the change; positive means forward."""
        return timedelta(seconds=self._wall() - self._steady() - self._began)


@dataclass(frozen=True, slots=True)
class Due:
    """Incidents received before `before` are due for deletion: `count` of `total`, `late` of them for more
    than a day."""

    before: datetime
    count: int
    late: int
    total: int


def due(service: Service, now: datetime | None = None) -> Due | None:
    """Returns what is due for deletion, or None if the settings keep everything."""
    days = service.settings.retention_days
    if not days:
        return None
    before = (now or datetime.now(UTC)) - timedelta(days=days)
    with service.database.reading() as session:
        count, late = (incidents.count(session, moment) for moment in (before, before - _LATE))
        return Due(before, count, late, incidents.count(session) if count else 0)


def forget_old(service: Service, now: datetime | None = None, clock: Clock | None = None) -> int:
    """Deletes what is older than the settings allow, and returns how many incidents. Each is a transaction of its own,
    so deletion can be interrupted.

    Deletes nothing and logs an error if the clock was set while the service ran, or if too many incidents are late, as
    after a start with a wrong clock.
    """
    found = due(service, now)
    if found is None:
        return 0
    why = found.count and _doubt(found, clock.was_set_by() if clock else timedelta())
    if why:
        service.counters.set_held_back("incidents", found.count, why)
        log.error("retention deletes nothing: %s; `torchtriage db forget-old --yes` deletes them", why)
        return 0
    service.counters.set_held_back("incidents")
    return forget(service, found)


def forget(service: Service, found: Due) -> int:
    """Deletes what is due, and returns how many incidents."""
    forgotten = 0
    while True:
        with service.database.reading() as session:
            old = incidents.received_before(session, found.before, _BATCH_SIZE)
        for incident_id in old:
            with suppress(NotFound):  # another process has deleted it
                forget_incident(service, incident_id, "retention")
                forgotten += 1
            service.heartbeats.beat(UPKEEP)  # deleting can take long
        if len(old) < _BATCH_SIZE:
            log.info("%d incidents older than %d days were deleted", forgotten, service.settings.retention_days)
            return forgotten


def _doubt(found: Due, set_by: timedelta) -> str | None:
    if abs(set_by) > _APART:
        hours = round(set_by / timedelta(hours=1))
        return f"the system's clock was set by {hours:+} hours while the service ran; restart it when that is right"
    if found.late > _SHARE * found.total:
        return f"{found.late} of {found.total} incidents were due more than a day ago; the clock may be wrong"
    return None
