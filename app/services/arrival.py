"""A log on its way in: what is durable already, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from app.domain.incident import Incident, Job, StoredLog
from app.storage.blob_writer import BlobWriter


@dataclass(frozen=True, slots=True)
class Arrival:
    """A log whose files are durable and whose row is not."""

    job: Job
    log: StoredLog
    writers: tuple[BlobWriter, ...]
    at: datetime


@dataclass(frozen=True, slots=True)
class Accepted:
    """An incident that was accepted, as it was then; `new` is False for one that was there before."""

    incident: Incident
    new: bool

    @property
    def incident_id(self) -> str:
        return self.incident.id
