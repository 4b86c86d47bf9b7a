"""Reads, lists and forgets incidents, reads pieces of their logs, and takes what people say of their verdicts."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime

from torchtriage.domain.access import Change
from torchtriage.domain.incident import Feedback, Incident, IncidentFilter, StoredFile, StoredLine
from torchtriage.errors import NotFound, StorageUnavailable
from torchtriage.services.service import Service
from torchtriage.services.stored_logs import remove_unused
from torchtriage.services.user_text import written
from torchtriage.storage import audit_log, feedback, incidents
from torchtriage.storage.pagination import Page

log = logging.getLogger(__name__)


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
        audit_log.add(session, Change(said.at, said.by, "feedback", f"incident {incident_id}", {"after": told}))
        return incidents.read(session, incident_id)


def forget_incident(service: Service, incident_id: str, by: str) -> None:
    """Takes an incident away, and its log where no other incident has the same. Raises NotFound, StorageUnavailable.

    Its log goes when the row has gone for good: where that can't be kept, both stay.
    """
    with service.database.transaction() as session:
        gone = incidents.remove(session, incident_id)
        audit_log.add(
            session, Change(datetime.now(UTC), by, "forget", f"incident {incident_id}", {"before": gone.told})
        )
    try:
        remove_unused(service, gone.digests)
    except StorageUnavailable as error:
        log.warning("incident %s is forgotten, its log stays until it is swept: %s", incident_id, error.message)
