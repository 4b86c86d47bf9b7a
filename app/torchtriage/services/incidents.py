"""Reads, lists, exports and deletes incidents, reads parts of their logs, and records feedback."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain

from torchtriage.domain.access import AuditLine
from torchtriage.domain.incident import Feedback, FeedbackVerdict, Incident, IncidentFilter, StoredFile, StoredLine
from torchtriage.domain.incident_summary import IncidentSummary, SenderReport
from torchtriage.errors import NotFound, StorageUnavailable
from torchtriage.services.service import Service
from torchtriage.services.stored_logs import remove_unused
from torchtriage.services.user_text import cleaned
from torchtriage.storage import audit_log, feedback, incident_summaries, incidents
from torchtriage.storage.pagination import Page

_BATCH_SIZE = 200  # incidents per transaction
MAX_INCIDENTS = 200  # maximum incidents per call
_FOR_SENDERS = 2000  # newest incidents among which senders are searched

log = logging.getLogger(__name__)


def read_incident(service: Service, incident_id: str) -> Incident:
    """Returns an incident. Raises NotFound."""
    with service.database.reading() as session:
        return incidents.read(session, incident_id)


def list_incidents(
    service: Service, wanted: IncidentFilter, limit: int = 50, cursor: str | None = None
) -> Page[Incident]:
    """Returns a page of incidents, newest first. Raises BadCursor."""
    with service.database.reading() as session:
        return incidents.listed(session, _known(service, wanted), limit, cursor)


def list_summaries(
    service: Service, wanted: IncidentFilter, limit: int = 50, cursor: str | None = None
) -> Page[IncidentSummary]:
    """Returns a page of list rows, newest first. Raises BadCursor."""
    with service.database.reading() as session:
        return incident_summaries.listed(session, _known(service, wanted), limit, cursor)


def _known(service: Service, wanted: IncidentFilter) -> IncidentFilter:
    """Replaces the filter's owner by the ids of the entries that have this owner in the current knowledge."""
    if wanted.owner is None:
        return wanted
    theirs = (entry.id for entry in service.knowledge.entries.values() if entry.owner == wanted.owner)
    return replace(wanted, entries=frozenset(theirs))


def read_log(
    service: Service, incident: Incident, first: int, count: int, file: str | None = None
) -> tuple[StoredFile, list[StoredLine]]:
    """Returns the selected file of the incident's log, and at most `count` of its lines from line `first` on.

    `file` is a name in the incident's log; None selects its first file. Raises NotFound.
    """
    files = incident.log.files
    found = next((known for known in files if known.name == file), None) if file is not None else files[0]
    if found is None:
        raise NotFound("no such file in the incident's log", file=(file or "")[:300])
    return found, service.blobs.lines(found.sha256, first, count)


def give_feedback(service: Service, incident_id: str, given: Feedback) -> Incident:
    """Records somebody's feedback about an incident's verdict, and returns the incident. Raises NotFound."""
    if given.entry is not None and given.entry not in service.knowledge.entries:
        raise NotFound("no such entry", entry=given.entry[:100])
    given = replace(given, note=cleaned(given.note))
    detail = {"verdict": given.verdict, "entry": given.entry, "note": given.note}
    with service.database.transaction() as session:
        feedback.add(session, incident_id, given)
        audit_log.add(session, AuditLine(given.at, given.by, "feedback", f"incident {incident_id}", {"after": detail}))
        return incidents.read(session, incident_id)


def undo_feedback_of(service: Service, incident_id: str, by: str, at: datetime) -> None:
    """Removes the feedback that `by` gave about an incident at that time. Raises NotFound."""
    with service.database.transaction() as session:
        removed = feedback.remove(session, incident_id, by, at)
        detail = {"verdict": removed.verdict, "entry": removed.entry, "note": removed.note}
        change = AuditLine(datetime.now(UTC), by, "undo feedback", f"incident {incident_id}", {"before": detail})
        audit_log.add(session, change)


def forget_incident(service: Service, incident_id: str, by: str) -> None:
    """Deletes an incident, and its log if no other incident has the same one. Raises NotFound and StorageUnavailable.

    The log is deleted after the row's deletion is durable. If that fails, both remain.
    """
    with service.database.transaction() as session:
        gone = incidents.remove(session, incident_id)
        audit_log.add(
            session,
            AuditLine(datetime.now(UTC), by, "forget", f"incident {incident_id}", {"before": gone.audit_detail}),
        )
    try:
        remove_unused(service, gone.digests)
    except StorageUnavailable as error:
        log.warning("incident %s was deleted; its log stays until the next sweep: %s", incident_id, error.message)


def read_incidents(service: Service, incident_ids: Sequence[str]) -> list[Incident]:
    """Returns those of the incidents that exist, at most MAX_INCIDENTS."""
    with service.database.reading() as session:
        return incidents.many(session, list(incident_ids[:MAX_INCIDENTS]))


def read_summaries(service: Service, incident_ids: Sequence[str]) -> list[IncidentSummary]:
    """Returns the list rows of those of the incidents that exist."""
    with service.database.reading() as session:
        return incident_summaries.many(session, incident_ids)


def forget_incidents(service: Service, incident_ids: Sequence[str], by: str) -> int:
    """Deletes incidents and returns how many. Those that somebody else deleted meanwhile do not count."""
    done = 0
    for incident_id in incident_ids[:MAX_INCIDENTS]:
        try:
            forget_incident(service, incident_id, by)
        except NotFound:
            continue
        done += 1
    return done


def give_feedback_to(service: Service, incident_ids: Sequence[str], verdict: FeedbackVerdict, by: str) -> int:
    """Records that the verdicts of these incidents are right, or wrong. Returns the number of incidents."""
    known = [incident.id for incident in read_incidents(service, incident_ids) if incident.verdict is not None]
    for incident_id in known:
        give_feedback(service, incident_id, Feedback(verdict, by, datetime.now(UTC)))
    return len(known)


def every_incident(service: Service, wanted: IncidentFilter) -> Iterator[Incident]:
    """Yields all matching incidents, newest first, without those received meanwhile. The first part is read at once.

    Raises StorageUnavailable, also later during iteration.
    """
    first = list_incidents(service, wanted, _BATCH_SIZE)
    return chain(first.items, _following(service, wanted, first.next))


def _following(service: Service, wanted: IncidentFilter, cursor: str | None) -> Iterator[Incident]:
    while cursor is not None:
        page = list_incidents(service, wanted, _BATCH_SIZE, cursor)
        yield from page.items
        cursor = page.next


def newest_by_sender(service: Service) -> dict[str, SenderReport]:
    """Returns the newest report of each scheduler, and of each value of the label `source`, among recent incidents."""
    with service.database.reading() as session:
        return incident_summaries.newest_by_sender(session, _FOR_SENDERS)


def similar_to(service: Service, incident: Incident, limit: int) -> list[Incident]:
    """Returns at most `limit` similar incidents: first those of the same group, then those with the same entry. In each
    part, incidents with feedback come first, then the newest."""
    questions = [IncidentFilter(group=incident.group.id)] if incident.group else []
    if incident.entry:
        questions.append(IncidentFilter(entry=incident.entry))
    found: dict[str, Incident] = {}
    for wanted in questions:
        others = list_incidents(service, wanted, limit + 1).items
        for other in sorted(others, key=lambda other: not other.feedback):
            found.setdefault(other.id, other)
    found.pop(incident.id, None)
    return list(found.values())[:limit]
