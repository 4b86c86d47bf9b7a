"""Finds out, after an upgrade, under which fingerprints today's knowledge puts the groups that there are.

The newest logs of each fingerprint are triaged again; their verdicts stay as they are. What was looked at is noted as
it goes, so that a process that is stopped goes on where it was, and several share the work. Until it is known, groups
that are made may turn out to be older ones, so that nobody is told of them as new.
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
LOOKED_AT = 10  # logs of a fingerprint, the newest ones
_BYTES = 64 << 20  # of those, beyond the first
_AWAY = 10.0  # seconds before the next try where the database is away
_PAUSES = (10.0, 20.0, 40.0, 80.0)  # the same for logs that are out of reach
_PATIENCE = 5.0  # seconds that a triage under way has when the service stops
_TOLD = 60.0  # seconds between two messages of how far it is


class FingerprintUpgrade:
    """One look at all fingerprints that were not looked at with today's knowledge."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep_trying, name="succession")

    def start(self) -> None:
        """Looks in the background, where there is anything to look at."""
        if not self._service.settled.is_set():
            self._thread.start()

    def stop(self) -> None:
        """Has it end soon; what was looked at stays so."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_PATIENCE)
            if self._thread.is_alive():
                self._service.triager.interrupt()
            self._thread.join()

    def run(self, patient: bool = False) -> None:
        """Looks at all that is left, here; waits for logs that are out of reach where it is `patient`.

        Raises StorageUnavailable, Interrupted.
        """
        with self._service.database.reading() as session:
            wanted = fingerprint_upgrade.unlooked(session, self._service.knowledge_version)
        if not wanted and self._service.settled.is_set():
            return
        log.info("checking %d group fingerprints against today's knowledge base", len(wanted))
        for pause in _PAUSES if patient else ():
            wanted = self._out_of_reach(wanted)
            if not wanted or self._stopping.wait(pause):
                break
        wanted = self._out_of_reach(wanted, last=True)
        if wanted:
            log.warning("cannot read the logs of %d fingerprints; the next start tries again", len(wanted))
        if not self._stopping.is_set() and (patient or not wanted):
            self._settle()

    def _keep_trying(self) -> None:
        while not self._stopping.is_set():
            try:
                return self.run(patient=True)
            except Interrupted:
                return
            except TriageError as error:
                log.warning("cannot check groups, trying again: %s", error.message)
            self._stopping.wait(_AWAY)

    def _out_of_reach(self, wanted: list[str], last: bool = False) -> list[str]:
        """Looks at these fingerprints -> those whose logs can't be read now: some of them, or at the `last` try all."""
        left, told_at = [], time.monotonic()
        for done, fingerprint in enumerate(wanted):
            if self._stopping.is_set():
                break
            if time.monotonic() >= told_at + _TOLD:
                told_at = time.monotonic()
                log.info("%d of %d group fingerprints checked", done, len(wanted))
            try:
                if not self._look_at(fingerprint, last):
                    left.append(fingerprint)
            except TriageError:
                raise
            except Exception:  # One group that can't be looked at must not keep the others from it.
                log.exception("cannot check fingerprint %s", fingerprint)
        return left

    def _look_at(self, fingerprint: str, last: bool) -> bool:
        """-> False where its logs can't be read now."""
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
    """-> the first, and as many more as are not too large to be read for this."""
    total, some = 0, list[TriagedIncident]()
    for kept in newest:
        total += kept.log.bytes
        if some and total > _BYTES:
            break
        some.append(kept)
    return some
