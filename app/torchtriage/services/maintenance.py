"""Periodic maintenance of a service."""

from __future__ import annotations

import logging
import threading
import time

from torchtriage.errors import KnowledgeError, TriageError
from torchtriage.services.draft_tracking import count_tracked
from torchtriage.services.fingerprint_upgrade import FingerprintUpgrade
from torchtriage.services.firing_alerts import send_firing_again
from torchtriage.services.gathered_logs import report_due
from torchtriage.services.heartbeats import UPKEEP
from torchtriage.services.learned_knowledge import adopt_learned
from torchtriage.services.otlp_metrics import OtlpMetrics
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
_ALERTING = 300
_ENDING = 20  # seconds that a turn has for ending when the service stops


class Maintenance:
    """Takes a turn every minute from start to stop, in a thread of its own."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._clock = Clock()
        self._metrics = OtlpMetrics(service)
        self._known = service.knowledge.digest
        self._succession: FingerprintUpgrade | None = None
        self._forget_at = self._look_at = self._alert_at = time.monotonic()
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
        if self._succession is not None:
            self._succession.stop()
        self._thread.join(_ENDING)

    def turn(self) -> None:
        """Takes entries into use that people approved on another server, and counts those that are tracked; looks at
        the folders of knowledge; puts what waits into the queue where something went wrong; makes incidents of jobs
        whose logs came in pieces; sends metrics to an OTLP endpoint; tells Alertmanagers what fires, every five
        minutes; forgets what is old, every hour; lets the database look at how its tables are filled, and removes
        stored logs without an incident, every day.
        Raises StorageUnavailable."""
        self._adopt_learned()
        self._settle_learned()
        count_tracked(self._service, self._stopping.is_set)
        self._service.counters.knowledge_broken(bool(self._service.folders.look().problems))
        put_what_waits(self._service)
        report_due(self._service)
        self._metrics.send()
        if time.monotonic() >= self._alert_at:
            self._alert_at = time.monotonic() + _ALERTING
            send_firing_again(self._service)
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

    def _adopt_learned(self) -> None:
        try:
            adopt_learned(self._service)
        except KnowledgeError as error:  # the operator's own folders, which the look at them tells too
            log.warning("cannot use the entries that were approved in the page: %s", error.message)

    def _settle_learned(self) -> None:
        """Looks, in a thread of its own, where groups belong with the entries that came into use since the start."""
        service = self._service
        if service.settled.is_set() or service.knowledge.digest == self._known or not service.settings.serve_triages:
            return
        self._known = service.knowledge.digest
        if self._succession is not None:
            self._succession.stop()
        self._succession = FingerprintUpgrade(service)
        self._succession.start()

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
