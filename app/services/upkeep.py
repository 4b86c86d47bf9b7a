"""What a service does by itself from time to time."""

from __future__ import annotations

import logging
import time

from app.errors import TriageError
from app.services.outbox import forget_sent
from app.services.retention import Clock, forget_old
from app.services.service import Service, put_what_waits
from app.services.stored_logs import sweep
from app.storage import statistics

log = logging.getLogger(__name__)
PAUSE = 60  # seconds between two turns
_FORGETTING = 3600  # seconds
_LOOKING = 24 * 3600


class Upkeep:
    """Call `turn` every PAUSE seconds."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._clock = Clock()
        self._forget_at = self._look_at = time.monotonic()
        self._sweep_at = self._look_at + _FORGETTING  # not while it starts

    def turn(self) -> None:
        """Puts what waits into the queue where something went wrong; forgets what is old, every hour; lets the database
        look at how its tables are filled, and removes stored logs without an incident, every day."""
        try:
            put_what_waits(self._service)
            if time.monotonic() >= self._forget_at:
                self._forget_at = time.monotonic() + _FORGETTING
                forget_old(self._service, clock=self._clock)
                forget_sent(self._service)
            if time.monotonic() >= self._look_at:
                self._look_at = time.monotonic() + _LOOKING
                statistics.refresh(self._service.database)
            if time.monotonic() >= self._sweep_at:
                self._sweep_at = time.monotonic() + _LOOKING
                sweep(self._service)
        except TriageError as error:
            log.error("the upkeep is put off: %s", error.message)
