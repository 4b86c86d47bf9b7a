"""Does one thing to several incidents, each in a transaction of its own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from torchtriage.domain.incident import Feedback, FeedbackVerdict, Incident
from torchtriage.errors import NotFound
from torchtriage.services.incidents import forget_incident, say
from torchtriage.services.service import Service
from torchtriage.storage import incidents

MOST = 200  # at once


def read_some(service: Service, incident_ids: Sequence[str]) -> list[Incident]:
    """-> those of the incidents that are there, MOST at most."""
    with service.database.reading() as session:
        return incidents.many(session, list(incident_ids[:MOST]))


def forget_some(service: Service, incident_ids: Sequence[str], by: str) -> int:
    """-> how many there were; what somebody else forgot meanwhile does not count."""
    done = 0
    for incident_id in incident_ids[:MOST]:
        try:
            forget_incident(service, incident_id, by)
        except NotFound:
            continue
        done += 1
    return done


def say_of_some(service: Service, incident_ids: Sequence[str], verdict: FeedbackVerdict, by: str) -> int:
    """Keeps that the verdicts are right, or wrong -> of how many incidents."""
    known = [incident.id for incident in read_some(service, incident_ids) if incident.verdict is not None]
    for incident_id in known:
        say(service, incident_id, Feedback(verdict, by, datetime.now(UTC)))
    return len(known)
