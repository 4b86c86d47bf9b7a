"""Says why an entry did or did not match the log of an incident."""

from __future__ import annotations

from typing import Any

from app.domain.entry import Language
from app.domain.incident import Incident
from app.errors import NotFound
from app.services.service import Service
from app.services.triager import Order

MOST_BYTES = 64 << 20  # of a log that is read while somebody waits for a page


def why_not(service: Service, incident: Incident, entry: str, lang: Language) -> dict[str, Any] | None:
    """-> what `kb why --json` prints; None where the log is too long to be read at once.

    Raises NotFound, and what a triage raises.
    """
    if entry not in service.knowledge.entries:
        raise NotFound("there is no such entry", entry=entry[:100])
    log = incident.log
    if log.bytes > MOST_BYTES:
        return None
    files = tuple((file.name, file.sha256) for file in log.files)
    return service.triager.why(Order(files, log.bytes, lang), entry)
