"""Earlier failures like one: an incident in, others out."""

from __future__ import annotations

from torchtriage.domain.incident import Incident, IncidentFilter
from torchtriage.services.incidents import list_incidents
from torchtriage.services.service import Service


def similar(service: Service, incident: Incident, limit: int) -> list[Incident]:
    """-> at most `limit` others: first those of the incident's group, then those that the same entry explains; of each
    those with feedback first, then the newest."""
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
