"""Heartbeats of background loops, and the loops whose last heartbeat is too old."""

from __future__ import annotations

import time
from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

QUEUE, OUTBOX, UPKEEP = "queue", "outbox", "upkeep"


class Heartbeats(Collector):
    """Each loop beats when it completes a round. It cannot complete one if something it needs is unavailable.
    Thread-safe."""

    def __init__(self) -> None:
        self._within: dict[str, float] = {}
        self._last: dict[str, float] = {}

    def expect(self, loop: str, within: float) -> None:
        """Expects a heartbeat of the loop every `within` seconds from now on."""
        self._last[loop] = time.monotonic()
        self._within[loop] = within

    def beat(self, loop: str) -> None:
        self._last[loop] = time.monotonic()

    def ages(self) -> dict[str, float]:
        """Returns the seconds since the last heartbeat of each expected loop."""
        now = time.monotonic()
        return {loop: now - self._last[loop] for loop in list(self._within)}

    def missing(self) -> dict[str, float]:
        """Returns the loops whose last heartbeat is too old, with its age in seconds."""
        return {loop: age for loop, age in self.ages().items() if age > self._within[loop]}

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yields the ages for Prometheus."""
        family = GaugeMetricFamily(
            "torchtriage_heartbeat_age_seconds",
            "Seconds since a background loop last completed; grows when it hangs or a dependency is down",
            labels=["loop"],
        )
        for loop, age in sorted(self.ages().items()):
            family.add_metric([loop], age)
        yield family
