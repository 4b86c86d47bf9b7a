"""The progress of uploads: logs whose files are durable, accepted incidents, and the number of running uploads."""

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

_MAX_IGNORED_UPLOADS = 2  # up to this many uploads, triage does not wait
# Seconds over which the number of uploads is averaged. While many arrive, it is zero just after each group commit.
_MEAN = 0.05
_PAUSE = 0.015  # seconds between two checks


@dataclass(frozen=True, slots=True)
class UploadedLog:
    """A log whose files are durable and whose row is not yet. `close` releases what is needed only until then."""

    received: Received
    writers: tuple[BlobWriter, ...]
    close: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Accepted:
    """An accepted incident in its state at that time. `new` is False if it existed before."""

    incident: Incident
    new: bool

    @property
    def incident_id(self) -> str:
        return self.incident.id


class UploadCounter:
    """Counts the running uploads, so that other work can wait for them. Thread-safe."""

    def __init__(self) -> None:
        self._count = 0
        self._mean, self._at = 0.0, time.monotonic()  # recent mean, and the time of its last update
        self._changing = threading.Lock()

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Counts one more upload inside the `with` block."""
        self._change(1)
        try:
            yield
        finally:
            self._change(-1)

    def wait_for_uploads(self, seconds: float) -> None:
        """Returns when few uploads are running, or after `seconds`."""
        deadline = time.monotonic() + seconds
        while self._change(0) > _MAX_IGNORED_UPLOADS and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(_PAUSE, left))

    def _change(self, by: int) -> float:
        """Changes the count, and returns the recent mean before this change."""
        with self._changing:
            now = time.monotonic()
            self._mean += (self._count - self._mean) * (1 - math.exp((self._at - now) / _MEAN))
            self._at = now
            self._count += by
            return self._mean
