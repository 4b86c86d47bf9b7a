"""What a service does by itself from time to time."""

from __future__ import annotations

import logging
import time

from app.errors import TriageError
from app.services.incidents import forget_old
from app.services.outbox import forget_sent
from app.services.service import Service, put_what_waits
from app.storage import statistics

log = logging.getLogger(__name__)
PAUSE = 60  # seconds between two turns
_FORGETTING = 3600  # seconds
_LOOKING = 24 * 3600


class Upkeep:
    """Call `turn` every PAUSE seconds."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._forget_at = self._look_at = time.monotonic()

    def turn(self) -> None:
        """Looks at the folders of knowledge; puts what waits into the queue where something went wrong; forgets what is
        old, every hour; lets the database look at how its tables are filled, every day."""
        self._service.counters.knowledge_broken(bool(self._service.folders.look().problems))
        try:
            put_what_waits(self._service)
            if time.monotonic() >= self._forget_at:
                self._forget_at = time.monotonic() + _FORGETTING
                forget_old(self._service)
                forget_sent(self._service)
            if time.monotonic() >= self._look_at:
                self._look_at = time.monotonic() + _LOOKING
                statistics.refresh(self._service.database)
        except TriageError as error:
            log.error("the upkeep is put off: %s", error.message)
