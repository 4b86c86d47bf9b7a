"""A log on its way in: what is durable already, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.domain.incident import Incident
from app.storage.blob_writer import BlobWriter
from app.storage.received import Received


@dataclass(frozen=True, slots=True)
class Arrival:
    """A log whose files are durable and whose row is not. `close` takes away what was only needed until it is."""

    received: Received
    writers: tuple[BlobWriter, ...]
    close: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Accepted:
    """An incident that was accepted, as it was then; `new` is False for one that was there before."""

    incident: Incident
    new: bool

    @property
    def incident_id(self) -> str:
        return self.incident.id
