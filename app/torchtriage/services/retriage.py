"""Triages stored logs with today's knowledge: shows what would change, or changes it.

What today's knowledge says the same of is noted as it is seen, so that one that broke off goes on where it was.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from torchtriage.domain.access import Change
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
_AT_ONCE = 200  # incidents read at a time
_TOGETHER, _BYTES = 20, 4 << 20  # incidents that a process is given at a time, and of how many bytes at most
_AHEAD = 4  # such parts for each process, so that none waits for the database

_Part = list[TriagedIncident]
_Answers = list[Triaged | TriageError | None]


@dataclass(frozen=True, slots=True)
class Difference:
    """What today's knowledge says otherwise of an incident; an entry is None where none names the cause.

    `after` is None where it can't be triaged now: `problem` says why, and it stays as it is. `cases` are those of the
    entries that answered before and answer after: empty where none does, None where that is unknown.
    """

    incident_id: str
    before: tuple[str, str | None]  # outcome, or failed, and entry
    after: tuple[str, str | None] | None
    problem: str | None = None
    cases: tuple[str | None, str | None] = (None, None)

    @property
    def only_answer(self) -> bool:
        """Whether the cause stays, and another case answers it."""
        return self.before == self.after and self.cases[0] != self.cases[1]


class Retriage:
    """One run over all incidents whose verdict is of other knowledge, or over those that are `chosen`.

    `looked_at`, `failed` and `changed` count while it runs; `found` are those of which knowledge says otherwise, and
    `reanswered` counts those of them whose cause stays and that another case answers. Where it is unknown which case
    answered, only one that somebody chose gets another verdict for its case. `on_progress` is called with `looked_at`
    each time it has grown.
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
        """Has it end soon: what was done by then stays, and the next one goes on from there."""
        self.stopped = True
        self._fingerprint_upgrade.stop()

    def preview(self) -> Iterator[Difference]:
        """Yields what would change, and what can't be triaged now. Raises StorageUnavailable."""
        for kept, triaged in self._differing():
            yield _difference(kept, triaged)

    def change(self, by: str) -> Iterator[Difference]:
        """The same, and keeps the new verdicts, with the ones before. Raises StorageUnavailable."""
        whole = False
        self._fingerprint_upgrade.run()  # else groups would be left by their incidents one by one
        try:
            for kept, triaged in self._differing():
                if isinstance(triaged, Triaged):
                    self._keep(kept, triaged)
                yield _difference(kept, triaged)
            whole = not self.stopped
        finally:
            # Also of one that broke off: what it changed by then stays.
            if self.changed:
                self._write_down(by, whole)

    def _keep(self, kept: TriagedIncident, triaged: Triaged) -> None:
        summary = replace(triaged.summary, gpu_hours=gpu_hours_lost(kept.job, triaged.verdict))
        # Each by itself: one that held the groups of several would lock them in another order than all others.
        with self._service.database.transaction(durable=False) as session:
            self.changed += verdicts.replace(session, kept.id, triaged.verdict, summary, datetime.now(UTC))

    def _write_down(self, by: str, whole: bool) -> None:
        told = {"changed": self.changed, "of": self.looked_at, "knowledge": self._knowledge, "whole": whole}
        with self._service.database.transaction() as session:
            audit_log.add(session, Change(datetime.now(UTC), by, "retriage", "incidents", told))

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
        keys = [_as_chosen(kept.key) if self._chosen else kept.key for kept in part]
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
                return retriage_reads.of_other_knowledge(session, self._knowledge, last, _AT_ONCE)
            left = [number for number in self._chosen if number > last]
            return retriage_reads.some(session, left[:_AT_ONCE]) if left else []


def parts_of(wanted: Iterator[TriagedIncident]) -> Iterator[_Part]:
    """Yields them in parts; a large log is a part of its own, as it takes a process for long."""
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


def _as_chosen(key: VerdictKey | None) -> VerdictKey | None:
    return replace(key, case="") if key and key.case is None else key
