"""Runs stored logs against today's knowledge: shows what would change, then changes it."""

from __future__ import annotations

import logging
import pickle
import tempfile
from collections import deque
from collections.abc import Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import IO

from app.domain.access import Change
from app.domain.incident import Incident, State
from app.errors import TriageError
from app.services.cost import gpu_hours_lost
from app.services.service import Service
from app.services.triage_incident import order_of
from app.services.triager import Triaged
from app.storage import incidents, trail, verdicts
from app.storage.cursor import number_of
from app.triage.engine import VERSION

log = logging.getLogger(__name__)
_AT_ONCE = 200  # incidents read, and confirmed, at a time


@dataclass(frozen=True, slots=True)
class Difference:
    """What today's knowledge says otherwise of an incident; an entry is None where none names the cause."""

    incident_id: str
    before: tuple[str, str | None]  # outcome, or failed, and entry
    after: tuple[str, str | None]


class Retriage:
    """One run over all incidents whose verdict is of other knowledge, or over those that are `chosen`. `look` first,
    then `change`, or not."""

    def __init__(self, service: Service, chosen: Collection[str] = ()) -> None:
        self._service = service
        self._chosen = sorted(chosen, key=number_of)
        self._knowledge = f"{VERSION} {service.knowledge.digest}"
        self._found: IO[bytes] = tempfile.TemporaryFile(dir=service.blobs.incoming.folder)  # noqa: SIM115  closed below
        self.looked_at = 0
        self.failed = 0
        self._same: list[str] = []

    def look(self) -> Iterator[Difference]:
        """Yields what would change. An incident that can't be triaged now stays as it is and is counted in `failed`."""
        pool = ThreadPoolExecutor(max(1, self._service.settings.workers))
        under_way: deque[tuple[Incident, Future[Triaged | None]]] = deque()
        try:
            # Read ahead of what is triaged, so that no process waits for the database.
            for incident in self._wanted():
                under_way.append((incident, pool.submit(self._triage, incident)))
                if len(under_way) > _AT_ONCE:
                    yield from self._compared(*under_way.popleft())
            while under_way:
                yield from self._compared(*under_way.popleft())
        finally:
            pool.shutdown(cancel_futures=True)

    def _compared(self, incident: Incident, answer: Future[Triaged | None]) -> Iterator[Difference]:
        triaged = answer.result()
        self.looked_at += 1
        if triaged is None:
            self.failed += 1
        elif (difference := _difference(incident, triaged)) is None:
            self._same.append(incident.id)
        else:
            pickle.dump((incident.id, triaged), self._found)
            yield difference

    def change(self, by: str) -> int:
        """Keeps what `look` found, with the verdicts before -> how many changed. Raises StorageUnavailable."""
        database, now, changed = self._service.database, datetime.now(UTC), 0
        for start in range(0, len(self._same), _AT_ONCE):
            with database.transaction(durable=False) as session:
                verdicts.confirm(session, self._same[start : start + _AT_ONCE], self._knowledge)
        for incident_id, triaged in self._read_found():
            # Each by itself: one that held the groups of several would lock them in another order than all others do.
            with database.transaction(durable=False) as session:
                changed += verdicts.replace(session, incident_id, triaged.verdict, triaged.finding, now)
        with database.transaction() as session:
            trail.add(session, Change(now, by, "retriage", "incidents", {"changed": changed, "of": self.looked_at}))
        return changed

    def close(self) -> None:
        self._found.close()

    def _read_found(self) -> Iterator[tuple[str, Triaged]]:
        self._found.seek(0)
        while True:
            try:
                yield pickle.load(self._found)
            except EOFError:
                return

    def _wanted(self) -> Iterator[Incident]:
        last = "0"
        while known := self._after(last):
            last = known[-1].id
            yield from known

    def _after(self, last: str) -> list[Incident]:
        with self._service.database.reading() as session:
            if self._chosen:
                left = [chosen for chosen in self._chosen if number_of(chosen) > number_of(last)]
                return [known for known in incidents.many(session, left) if known.state.final]
            return incidents.many(session, verdicts.not_of(session, self._knowledge, last, _AT_ONCE))

    def _triage(self, incident: Incident) -> Triaged | None:
        try:
            triaged = self._service.triager.run(order_of(incident.log))
        except TriageError as error:
            log.warning("incident %s stays as it is: %s", incident.id, error.message)
            return None
        hours = gpu_hours_lost(incident.job, triaged.verdict)
        return replace(triaged, finding=replace(triaged.finding, gpu_hours=hours))


def _difference(incident: Incident, triaged: Triaged) -> Difference | None:
    before = (State.FAILED.value, None, None) if incident.verdict is None else _said(incident.verdict)
    after = _said(triaged.verdict)
    return None if before == after else Difference(incident.id, before[:2], after[:2])


def _said(verdict: dict[str, object]) -> tuple[str, str | None, str | None]:
    root = verdict["root_cause"]
    entry = root["entry"] if isinstance(root, dict) else None
    fingerprint = verdict["fingerprint"]
    return str(verdict["outcome"]), entry, fingerprint if fingerprint is None else str(fingerprint)
