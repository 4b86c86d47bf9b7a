"""A log on its way in: what is durable already, what came of it, and how many there are."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torchtriage.domain.incident import Incident
from torchtriage.storage.blob_writer import BlobWriter
from torchtriage.storage.new_incidents import Received

_FEW = 2  # logs taken in at the same time that leave a triage room beside them


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


class Accepting:
    """How many logs are being taken in, so that work that can wait gives way to them. Safe from any thread."""

    def __init__(self) -> None:
        self._count = 0
        self._fewer = threading.Condition()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Counts one more, until this is left."""
        with self._fewer:
            self._count += 1
        try:
            yield
        finally:
            with self._fewer:
                self._count -= 1
                self._fewer.notify_all()

    def give_way(self, seconds: float) -> None:
        """Returns when few are being taken in, or after so many seconds."""
        with self._fewer:
            self._fewer.wait_for(lambda: self._count <= _FEW, seconds)
