"""The progress of an upload: what is durable already, its result, and how many uploads there are."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torchtriage.domain.incident import Incident
from torchtriage.storage.blob_writer import BlobWriter
from torchtriage.storage.new_incidents import Received

_FEW = 2  # logs taken in at the same time that leave a triage room beside them
_MEAN = (
    0.05  # seconds of the past that tell how many: in a storm, none is for a moment whenever all are committed together
)
_PAUSE = 0.015  # seconds between two looks


@dataclass(frozen=True, slots=True)
class UploadedLog:
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


class UploadCounter:
    """How many logs are being taken in, so that work that can wait gives way to them. Safe from any thread."""

    def __init__(self) -> None:
        self._count = 0
        self._mean, self._at = 0.0, time.monotonic()  # how many there were lately, up to then
        self._changing = threading.Lock()

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Counts one more, until this is left."""
        self._change(1)
        try:
            yield
        finally:
            self._change(-1)

    def wait_until_few(self, seconds: float) -> None:
        """Returns when few are being taken in, or after so many seconds."""
        deadline = time.monotonic() + seconds
        while self._change(0) > _FEW and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(_PAUSE, left))

    def _change(self, by: int) -> float:
        """-> how many there were lately, before so many more."""
        with self._changing:
            now = time.monotonic()
            self._mean += (self._count - self._mean) * (1 - math.exp((self._at - now) / _MEAN))
            self._at = now
            self._count += by
            return self._mean
