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
from torchtriage.services.service import Service, queue_waiting
from torchtriage.services.stored_logs import sweep
from torchtriage.storage import planner_statistics

log = logging.getLogger(__name__)
_PAUSE = 60  # seconds between two rounds
_AGAIN = 10  # seconds after a failed round
_SILENT = 600  # maximum seconds without a heartbeat; a round may delete many incidents
_FORGETTING = 3600  # seconds between two rounds that delete old incidents
_LOOKING = 24 * 3600  # seconds between two rounds that refresh statistics or remove unused logs
_ALERTING = 300  # seconds between two rounds that send firing alerts again
_ENDING = 20  # seconds that a round may take after the service begins to stop


class Maintenance:
    """Runs a round every minute in its own thread."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._clock = Clock()
        self._metrics = OtlpMetrics(service)
        self._known = service.knowledge.digest
        self._succession: FingerprintUpgrade | None = None
        self._forget_at = self._look_at = self._alert_at = time.monotonic()
        self._sweep_at = self._look_at + _FORGETTING  # not during the start
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=UPKEEP, daemon=True)

    def start(self) -> None:
        self._service.heartbeats.expect(UPKEEP, _SILENT)
        self._thread.start()

    def stop(self) -> None:
        """Waits for the current round, because the database is about to close. A round that takes too long is aborted,
        which loses nothing."""
        self._stopping.set()
        if self._succession is not None:
            self._succession.stop()
        self._thread.join(_ENDING)

    def run_round(self) -> None:
        """Runs one round.

        Starts using entries that people approved on another server, and counts matches of tracked drafts. Checks the
        knowledge folders. Queues waiting incidents that are not in the queue. Makes incidents of logs that arrived in
        pieces. Sends metrics to the OTLP endpoint. Every five minutes, sends firing alerts to Alertmanagers again.
        Every hour, deletes old incidents. Every day, refreshes the database's planner statistics and removes stored
        logs without an incident.

        Raises StorageUnavailable.
        """
        self._adopt_learned()
        self._settle_learned()
        count_tracked(self._service, self._stopping.is_set)
        self._service.counters.knowledge_broken(bool(self._service.folders.current_state().problems))
        queue_waiting(self._service)
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
        except KnowledgeError as error:  # in the operator's own folders, which the check of the folders reports, too
            log.warning("cannot use the entries that were approved in the page: %s", error.message)

    def _settle_learned(self) -> None:
        """Starts checking which groups the entries that were adopted since the start belong to."""
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
                self.run_round()
            except TriageError as error:
                log.error("maintenance postponed: %s", error.message)
            except Exception:  # the next round may work, and without this loop nothing is ever repaired
                log.exception("maintenance postponed: it failed")
            else:
                pause = _PAUSE
                self._service.heartbeats.beat(UPKEEP)
