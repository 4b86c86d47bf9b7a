"""Deletes incidents older than the settings allow, unless the clock may be wrong."""

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
_AT_ONCE = 100  # incidents looked up at a time
_APART = timedelta(hours=1)  # of the two clocks; more than any system puts right by itself while a service runs
_LATE = timedelta(days=1)  # what is due for longer was not due at the last turns, or there were none
_SHARE = 0.25  # of all incidents; more than so many late ones are not forgotten unasked


def _since_boot() -> float:
    """Seconds that no one sets; where the system tells it, those in which it slept too."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Clock:
    """Tells by how much the system's clock was set since this was made."""

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = _since_boot) -> None:
        self._wall, self._steady = wall, steady
        self._began = wall() - steady()

    def was_set_by(self) -> timedelta:
        """-> forward is more than nothing."""
        return timedelta(seconds=self._wall() - self._steady() - self._began)


@dataclass(frozen=True, slots=True)
class Due:
    """Incidents received before `before` must be forgotten: `count` of `total`, `late` of them since a day."""

    before: datetime
    count: int
    late: int
    total: int


def due(service: Service, now: datetime | None = None) -> Due | None:
    """-> what is older than the settings keep; None where they keep everything."""
    days = service.settings.retention_days
    if not days:
        return None
    before = (now or datetime.now(UTC)) - timedelta(days=days)
    with service.database.reading() as session:
        count, late = (incidents.count(session, moment) for moment in (before, before - _LATE))
        return Due(before, count, late, incidents.count(session) if count else 0)


def forget_old(service: Service, now: datetime | None = None, clock: Clock | None = None) -> int:
    """Forgets what is older than the settings keep -> how many incidents; each by itself, so it can be interrupted.

    Where the clock was set while the service ran, or too many have been due for long, as after a start with a wrong
    clock, it forgets none and says so.
    """
    found = due(service, now)
    if found is None:
        return 0
    why = found.count and _doubt(found, clock.was_set_by() if clock else timedelta())
    if why:
        service.counters.hold_back("incidents", found.count, why)
        log.error("retention deletes nothing: %s; `torchtriage db forget-old --yes` deletes them", why)
        return 0
    service.counters.hold_back("incidents")
    return forget(service, found)


def forget(service: Service, found: Due) -> int:
    """Forgets what is due -> how many incidents."""
    forgotten = 0
    while True:
        with service.database.reading() as session:
            old = incidents.received_before(session, found.before, _AT_ONCE)
        for incident_id in old:
            with suppress(NotFound):  # another process was quicker
                forget_incident(service, incident_id, "retention")
                forgotten += 1
            service.heartbeats.beat(UPKEEP)  # there can be very many
        if len(old) < _AT_ONCE:
            log.info("%d incidents older than %d days were deleted", forgotten, service.settings.retention_days)
            return forgotten


def _doubt(found: Due, set_by: timedelta) -> str | None:
    if abs(set_by) > _APART:
        hours = round(set_by / timedelta(hours=1))
        return f"the system's clock was set by {hours:+} hours while the service ran; restart it when that is right"
    if found.late > _SHARE * found.total:
        return f"{found.late} of {found.total} incidents were due more than a day ago; the clock may be wrong"
    return None
