"""Heartbeats of the loops that must live as long as the process: beats in, loops that are silent for too long out."""

from __future__ import annotations

import time
from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

QUEUE, OUTBOX, UPKEEP = "queue", "outbox", "upkeep"


class Heartbeats(Collector):
    """A loop beats each time that it got round, which it can't where what it needs is away. Safe from any thread."""

    def __init__(self) -> None:
        self._within: dict[str, float] = {}
        self._last: dict[str, float] = {}

    def expect(self, loop: str, within: float) -> None:
        """From now on the loop is to beat every `within` seconds."""
        self._last[loop] = time.monotonic()
        self._within[loop] = within

    def beat(self, loop: str) -> None:
        self._last[loop] = time.monotonic()

    def ages(self) -> dict[str, float]:
        """-> seconds since the last beat of each loop that is to beat."""
        now = time.monotonic()
        return {loop: now - self._last[loop] for loop in list(self._within)}

    def missing(self) -> dict[str, float]:
        """-> the same of those that are silent for longer than they may."""
        return {loop: age for loop, age in self.ages().items() if age > self._within[loop]}

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """For Prometheus."""
        family = GaugeMetricFamily(
            "torchtriage_heartbeat_age_seconds",
            "Seconds since a background loop last completed; grows when it hangs or a dependency is down",
            labels=["loop"],
        )
        for loop, age in sorted(self.ages().items()):
            family.add_metric([loop], age)
        yield family
