"""Finds out, after an upgrade, which fingerprints the current knowledge gives the existing groups.

Triages the newest logs of each fingerprint again; stored verdicts do not change. Progress is stored, so a stopped
process can continue, and several can share the work. Until the work is done, new groups are provisional: they may prove
to be older ones, so nobody is alerted about them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from datetime import UTC, datetime

from torchtriage.errors import TriageError
from torchtriage.queue.subprocess_calls import Interrupted
from torchtriage.services.alerting import put_notices
from torchtriage.services.engine_runner import KnownRun, Triaged
from torchtriage.services.service import Service
from torchtriage.services.triage_incident import order_of
from torchtriage.storage import fingerprint_upgrade
from torchtriage.storage.database import StorageUnavailable
from torchtriage.storage.retriage_reads import TriagedIncident

log = logging.getLogger(__name__)
LOOKED_AT = 10  # newest logs per fingerprint
_BYTES = 64 << 20  # maximum bytes of these logs; the first one may be larger
_AWAY = 10.0  # seconds before the next try if the database is unavailable
_PAUSES = (10.0, 20.0, 40.0, 80.0)  # the same, if logs cannot be read
_TIMEOUT = 5.0  # seconds that a running triage may take after the service begins to stop
_PROGRESS_INTERVAL = 60.0  # seconds between two progress messages


class FingerprintUpgrade:
    """One pass over all fingerprints that were not checked with the current knowledge."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._retry_loop, name="succession")

    def start(self) -> None:
        """Starts the check in the background, if there is anything to check."""
        if not self._service.settled.is_set():
            self._thread.start()

    def stop(self) -> None:
        """Stops soon. Finished fingerprints stay checked."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_TIMEOUT)
            if self._thread.is_alive():
                self._service.triager.interrupt()
            self._thread.join()

    def run(self, patient: bool = False) -> None:
        """Checks all remaining fingerprints in this thread. If `patient`, waits for logs that cannot be read now.

        Raises StorageUnavailable and Interrupted.
        """
        with self._service.database.reading() as session:
            wanted = fingerprint_upgrade.unlooked(session, self._service.knowledge_version)
        if not wanted and self._service.settled.is_set():
            return
        log.info("checking %d group fingerprints against today's knowledge base", len(wanted))
        for pause in _PAUSES if patient else ():
            wanted = self._mark_unreachable(wanted)
            if not wanted or self._stopping.wait(pause):
                break
        wanted = self._mark_unreachable(wanted, last=True)
        if wanted:
            log.warning("cannot read the logs of %d fingerprints; the next start tries again", len(wanted))
        if not self._stopping.is_set() and (patient or not wanted):
            self._settle()

    def _retry_loop(self) -> None:
        while not self._stopping.is_set():
            try:
                return self.run(patient=True)
            except Interrupted:
                return
            except TriageError as error:
                log.warning("cannot check groups, trying again: %s", error.message)
            self._stopping.wait(_AWAY)

    def _mark_unreachable(self, wanted: list[str], last: bool = False) -> list[str]:
        """Checks these fingerprints. Returns those with logs that cannot be read now: any of them or, at the `last`
        try, all."""
        left, reported_at = [], time.monotonic()
        for done, fingerprint in enumerate(wanted):
            if self._stopping.is_set():
                break
            if time.monotonic() >= reported_at + _PROGRESS_INTERVAL:
                reported_at = time.monotonic()
                log.info("%d of %d group fingerprints checked", done, len(wanted))
            try:
                if not self._look_at(fingerprint, last):
                    left.append(fingerprint)
            except TriageError:
                raise
            except Exception:  # One fingerprint that fails must not prevent the check of the others.
                log.exception("cannot check fingerprint %s", fingerprint)
        return left

    def _look_at(self, fingerprint: str, last: bool) -> bool:
        """Returns False if the fingerprint's logs cannot be read now."""
        service = self._service
        with service.database.reading() as session:
            if not fingerprint_upgrade.is_left(session, fingerprint, service.knowledge_version):
                return True
            newest = _bounded(fingerprint_upgrade.sample(session, fingerprint, LOOKED_AT))
        answers = service.triager.changed([KnownRun(order_of(kept.log, kept.job), kept.key) for kept in newest])
        away = sum(isinstance(answer, StorageUnavailable) for answer in answers)
        if away and (not last or away == len(answers)):
            return False
        seen: Counter[str] = Counter()
        for kept, answer in zip(newest, answers, strict=True):
            if answer is None:
                seen[fingerprint] += 1
            elif isinstance(answer, Triaged):
                seen[answer.summary.fingerprint or ""] += 1
            else:
                log.info("cannot use incident %s to check its group: %s", kept.id, answer.message)
        with service.database.transaction() as session:
            for incident_id in fingerprint_upgrade.carry(session, fingerprint, seen, service.knowledge_version):
                put_notices(session, service, incident_id)
        return True

    def _settle(self) -> None:
        with self._service.database.transaction() as session:
            new = fingerprint_upgrade.settle(session, datetime.now(UTC))
        self._service.settled.set()
        log.info("group fingerprints are up to date; %d groups received meanwhile are new", new)


def _bounded(newest: list[TriagedIncident]) -> list[TriagedIncident]:
    """Returns the first incident, and more as long as their logs together are not too large."""
    total, some = 0, list[TriagedIncident]()
    for kept in newest:
        total += kept.log.bytes
        if some and total > _BYTES:
            break
        some.append(kept)
    return some
