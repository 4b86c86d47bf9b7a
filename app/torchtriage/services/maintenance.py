"""Periodic maintenance of a service."""

from __future__ import annotations

import logging
import threading
import time

from torchtriage.errors import TriageError
from torchtriage.services.heartbeats import UPKEEP
from torchtriage.services.outbox import forget_sent
from torchtriage.services.retention import Clock, forget_old
from torchtriage.services.service import Service, put_what_waits
from torchtriage.services.stored_logs import sweep
from torchtriage.storage import planner_statistics

log = logging.getLogger(__name__)
_PAUSE = 60  # seconds between two turns
_AGAIN = 10  # seconds after one that failed
_SILENT = 600  # seconds without a heartbeat: a turn can have much to forget
_FORGETTING = 3600  # seconds
_LOOKING = 24 * 3600
_ENDING = 20  # seconds that a turn has for ending when the service stops


class Maintenance:
    """Takes a turn every minute from start to stop, in a thread of its own."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._clock = Clock()
        self._forget_at = self._look_at = time.monotonic()
        self._sweep_at = self._look_at + _FORGETTING  # not while it starts
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=UPKEEP, daemon=True)

    def start(self) -> None:
        self._service.heartbeats.expect(UPKEEP, _SILENT)
        self._thread.start()

    def stop(self) -> None:
        """Lets a turn end: the database is about to go away below it. What takes too long is broken off, which loses
        nothing."""
        self._stopping.set()
        self._thread.join(_ENDING)

    def turn(self) -> None:
        """Looks at the folders of knowledge; puts what waits into the queue where something went wrong; forgets what is
        old, every hour; lets the database look at how its tables are filled, and removes stored logs without an
        incident, every day. Raises StorageUnavailable."""
        self._service.counters.knowledge_broken(bool(self._service.folders.look().problems))
        put_what_waits(self._service)
        if time.monotonic() >= self._forget_at:
            self._forget_at = time.monotonic() + _FORGETTING
            forget_old(self._service, clock=self._clock)
            forget_sent(self._service)
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + _LOOKING
            planner_statistics.refresh(self._service.database)
        if time.monotonic() >= self._sweep_at:
            self._sweep_at = time.monotonic() + _LOOKING
            sweep(self._service)

    def _run(self) -> None:
        pause = 0.0
        while not self._stopping.wait(pause):
            pause = _AGAIN
            try:
                self.turn()
            except TriageError as error:
                log.error("maintenance postponed: %s", error.message)
            except Exception:  # what broke one turn may be gone in the next, and without any nothing is ever put right
                log.exception("maintenance postponed: it failed")
            else:
                pause = _PAUSE
                self._service.heartbeats.beat(UPKEEP)
