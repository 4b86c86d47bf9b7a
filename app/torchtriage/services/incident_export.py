"""Every incident that fits a filter, one after another, however many there are; only a piece is held at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from torchtriage.domain.incident import Incident, IncidentFilter
from torchtriage.services.incidents import list_incidents
from torchtriage.services.service import Service

_AT_ONCE = 200  # incidents, each piece in a transaction of its own


def every_incident(service: Service, wanted: IncidentFilter) -> Iterator[Incident]:
    """-> the newest first; what is received meanwhile is not among them. The first piece is read at once.

    Raises StorageUnavailable, also later, while they are taken.
    """
    first = list_incidents(service, wanted, _AT_ONCE)
    return chain(first.items, _following(service, wanted, first.next))


def _following(service: Service, wanted: IncidentFilter, cursor: str | None) -> Iterator[Incident]:
    while cursor is not None:
        page = list_incidents(service, wanted, _AT_ONCE, cursor)
        yield from page.items
        cursor = page.next
