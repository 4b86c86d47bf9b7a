"""Triages stored logs with the current knowledge, and shows or applies the changes.

Incidents whose verdict stays the same are marked at once, so an interrupted retriage continues where it stopped.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from torchtriage.domain.access import AuditLine
from torchtriage.domain.incident import State, VerdictKey
from torchtriage.errors import TriageError
from torchtriage.queue.subprocess_calls import LARGE
from torchtriage.services.engine_runner import KnownRun, Triaged
from torchtriage.services.fingerprint_upgrade import FingerprintUpgrade
from torchtriage.services.job_cost import gpu_hours_lost
from torchtriage.services.service import Service
from torchtriage.services.triage_incident import order_of
from torchtriage.storage import audit_log, retriage_reads, verdicts
from torchtriage.storage.pagination import number_of
from torchtriage.storage.retriage_reads import TriagedIncident

log = logging.getLogger(__name__)
_BATCH_SIZE = 200  # incidents per read
_TOGETHER, _BYTES = 20, 4 << 20  # maximum incidents, and maximum bytes, that a process gets at a time
_AHEAD = 4  # queued parts per process, so that no process waits for the database

_Part = list[TriagedIncident]
_Answers = list[Triaged | TriageError | None]


@dataclass(frozen=True, slots=True)
class Difference:
    """How the current verdict of an incident differs. An entry is None if no entry names the cause.

    `after` is None if the incident cannot be triaged now; then `problem` says why, and its verdict stays. `cases` are
    the cases that answered before and answer now: empty if there is none, None if unknown.
    """

    incident_id: str
    before: tuple[str, str | None]  # (outcome or "failed", entry)
    after: tuple[str, str | None] | None
    problem: str | None = None
    cases: tuple[str | None, str | None] = (None, None)

    @property
    def only_answer(self) -> bool:
        """Whether the cause is the same and only the answer's case differs."""
        return self.before == self.after and self.cases[0] != self.cases[1]


class Retriage:
    """One pass over all incidents with a verdict of other knowledge, or over the `chosen` ones.

    `looked_at`, `failed` and `changed` are counts so far. `found` are the ids of incidents whose verdict differs, and
    `reanswered` counts those of them with the same cause and another case. If the case of an old verdict is unknown, it
    counts as a difference only for chosen incidents. `on_progress` is called with `looked_at` after each incident.
    """

    def __init__(
        self, service: Service, chosen: Collection[str] = (), on_progress: Callable[[int], object] = bool
    ) -> None:
        self._service = service
        self._chosen = sorted(set(map(number_of, chosen)))
        self._knowledge = service.knowledge_version
        self._fingerprint_upgrade = FingerprintUpgrade(service)
        self._on_progress = on_progress
        self.looked_at = 0
        self.failed = 0
        self.changed = 0
        self.reanswered = 0
        self.found: list[str] = []
        self.stopped = False

    def stop(self) -> None:
        """Stops soon. What is done stays, and the next retriage continues from there."""
        self.stopped = True
        self._fingerprint_upgrade.stop()

    def preview(self) -> Iterator[Difference]:
        """Yields what would change, and what cannot be triaged now. Raises StorageUnavailable."""
        for kept, triaged in self._differing():
            yield _difference(kept, triaged)

    def change(self, by: str) -> Iterator[Difference]:
        """Yields the same as `preview`, and stores the new verdicts; the old ones stay in the history. Raises
        StorageUnavailable."""
        whole = False
        self._fingerprint_upgrade.run()  # otherwise incidents would leave their groups one by one
        try:
            for kept, triaged in self._differing():
                if isinstance(triaged, Triaged):
                    self._keep(kept, triaged)
                yield _difference(kept, triaged)
            whole = not self.stopped
        finally:
            # Also after an interruption, because its changes stay.
            if self.changed:
                self._audit(by, whole)

    def _keep(self, kept: TriagedIncident, triaged: Triaged) -> None:
        summary = replace(triaged.summary, gpu_hours=gpu_hours_lost(kept.job, triaged.verdict))
        # One transaction per incident: one that locked the groups of several would lock them in another order than
        # others do.
        with self._service.database.transaction(durable=False) as session:
            self.changed += verdicts.replace(session, kept.id, triaged.verdict, summary, datetime.now(UTC))

    def _audit(self, by: str, whole: bool) -> None:
        detail = {"changed": self.changed, "of": self.looked_at, "knowledge": self._knowledge, "whole": whole}
        with self._service.database.transaction() as session:
            audit_log.add(session, AuditLine(datetime.now(UTC), by, "retriage", "incidents", detail))

    def _differing(self) -> Iterator[tuple[TriagedIncident, Triaged | TriageError]]:
        workers = max(1, self._service.settings.workers)
        pool = ThreadPoolExecutor(workers)
        under_way: deque[tuple[_Part, Future[_Answers]]] = deque()
        try:
            for part in parts_of(self._wanted()):
                if self.stopped:
                    return
                under_way.append((part, pool.submit(self._triaged, part)))
                if len(under_way) > workers * _AHEAD:
                    yield from self._compared(*under_way.popleft())
            while under_way and not self.stopped:
                yield from self._compared(*under_way.popleft())
        finally:
            pool.shutdown(cancel_futures=True)

    def _triaged(self, part: _Part) -> _Answers:
        keys = [_with_known_case(kept.key) if self._chosen else kept.key for kept in part]
        known = [KnownRun(order_of(kept.log, kept.job), key) for kept, key in zip(part, keys, strict=True)]
        return self._service.triager.changed(known)

    def _compared(
        self, part: _Part, answers: Future[_Answers]
    ) -> Iterator[tuple[TriagedIncident, Triaged | TriageError]]:
        same = []
        for kept, triaged in zip(part, answers.result(), strict=True):
            self.looked_at += 1
            self._on_progress(self.looked_at)
            if triaged is None:
                same.append(kept.id)
                continue
            if isinstance(triaged, TriageError):
                log.warning("incident %s stays as it is: %s", kept.id, triaged.message)
                self.failed += 1
            else:
                self.found.append(kept.id)
                self.reanswered += _difference(kept, triaged).only_answer
            yield kept, triaged
        if same:
            with self._service.database.transaction(durable=False) as session:
                verdicts.confirm(session, same, self._knowledge)

    def _wanted(self) -> Iterator[TriagedIncident]:
        last = 0
        while known := self._after(last):
            last = int(known[-1].id)
            yield from known

    def _after(self, last: int) -> list[TriagedIncident]:
        with self._service.database.reading() as session:
            if not self._chosen:
                return retriage_reads.of_other_knowledge(session, self._knowledge, last, _BATCH_SIZE)
            left = [number for number in self._chosen if number > last]
            return retriage_reads.some(session, left[:_BATCH_SIZE]) if left else []


def parts_of(wanted: Iterator[TriagedIncident]) -> Iterator[_Part]:
    """Yields the incidents in parts. A large log is a part of its own, because it occupies a process for long."""
    part: _Part = []
    total = 0
    for kept in wanted:
        size = kept.log.bytes
        if part and (len(part) == _TOGETHER or total + size > _BYTES or size >= LARGE):
            yield part
            part, total = [], 0
        part.append(kept)
        total += size
    if part:
        yield part


def _difference(kept: TriagedIncident, triaged: Triaged | TriageError) -> Difference:
    before = (kept.key.outcome, kept.key.entry) if kept.key else (State.FAILED.value, None)
    if isinstance(triaged, TriageError):
        return Difference(kept.id, before, None, triaged.message)
    cases = (kept.key.case if kept.key else None, triaged.summary.case)
    return Difference(kept.id, before, (triaged.summary.outcome, triaged.summary.entry), cases=cases)


def _with_known_case(key: VerdictKey | None) -> VerdictKey | None:
    return replace(key, case="") if key and key.case is None else key
