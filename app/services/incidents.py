"""Reads, lists and forgets incidents, reads pieces of their logs, and takes what people say of their verdicts."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from app.domain.access import Change
from app.domain.incident import Feedback, Incident, IncidentFilter, StoredFile, StoredLine
from app.errors import NotFound
from app.services.heartbeats import UPKEEP
from app.services.service import Service
from app.services.written import written
from app.storage import feedback, incidents, trail
from app.storage.cursor import Page

log = logging.getLogger(__name__)
_AT_ONCE = 100  # incidents looked up at a time when old ones are forgotten


def read_incident(service: Service, incident_id: str) -> Incident:
    """Raises NotFound."""
    with service.database.reading() as session:
        return incidents.read(session, incident_id)


def list_incidents(
    service: Service, wanted: IncidentFilter, limit: int = 50, cursor: str | None = None
) -> Page[Incident]:
    """-> the newest first. Raises BadCursor."""
    with service.database.reading() as session:
        return incidents.listed(session, wanted, limit, cursor)


def read_log(
    service: Service, incident: Incident, first: int, count: int, file: str | None = None
) -> tuple[StoredFile, list[StoredLine]]:
    """-> the file of the incident's log that is meant, and at most `count` of its lines from `first` on.

    `file` is a name in the incident's log; None is its first one. Raises NotFound.
    """
    files = incident.log.files
    found = next((known for known in files if known.name == file), None) if file is not None else files[0]
    if found is None:
        raise NotFound("the incident's log has no such file", file=(file or "")[:300])
    return found, service.blobs.lines(found.sha256, first, count)


def say(service: Service, incident_id: str, said: Feedback) -> Incident:
    """Keeps what somebody says of an incident's verdict -> the incident. Raises NotFound."""
    if said.entry is not None and said.entry not in service.knowledge.entries:
        raise NotFound("there is no such entry", entry=said.entry[:100])
    said = replace(said, note=written(said.note))
    told = {"verdict": said.verdict, "entry": said.entry, "note": said.note}
    with service.database.transaction() as session:
        feedback.add(session, incident_id, said)
        trail.add(session, Change(said.at, said.by, "feedback", f"incident {incident_id}", {"after": told}))
        return incidents.read(session, incident_id)


def forget_incident(service: Service, incident_id: str, by: str) -> None:
    """Takes an incident away, and its log where no other incident has the same. Raises NotFound."""
    with service.database.transaction() as session:
        gone = incidents.remove(session, incident_id)
        trail.add(session, Change(datetime.now(UTC), by, "forget", f"incident {incident_id}", {"before": gone.told}))
        # Held until the rows are gone for everyone: nobody may count on a file that is about to go.
        incidents.hold_files(session, gone.digests)
        for digest in incidents.unused(session, gone.digests):
            service.blobs.remove(digest)


def forget_old(service: Service, now: datetime | None = None) -> int:
    """Forgets what is older than the settings keep -> how many incidents; each by itself, so it can be interrupted."""
    days = service.settings.retention_days
    if not days:
        return 0
    moment = (now or datetime.now(UTC)) - timedelta(days=days)
    forgotten = 0
    while True:
        with service.database.reading() as session:
            old = incidents.received_before(session, moment, _AT_ONCE)
        for incident_id in old:
            forget_incident(service, incident_id, "retention")
            forgotten += 1
            service.heartbeats.beat(UPKEEP)  # there can be very many
        if len(old) < _AT_ONCE:
            log.info("%d incidents were older than %d days and are forgotten", forgotten, days)
            return forgotten
