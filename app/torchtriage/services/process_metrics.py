"""What this process counts of its work, for Prometheus; each service counts for itself."""

from __future__ import annotations

import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from torchtriage.domain.incident import VerdictSummary

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300)


class Counters:
    """`registry` holds them all; nothing is shared with another service in the same process. `began` is since when they
    count, in nanoseconds since 1970."""

    def __init__(self) -> None:
        self.began = time.time_ns()
        self.registry = CollectorRegistry()
        self._accepted = Counter("torchtriage_accepted", "Incidents that were accepted", registry=self.registry)
        self._failed = Counter("torchtriage_failed", "Incidents that could not be triaged", registry=self.registry)
        self._triaged = Counter(
            "torchtriage_triaged", "Incidents that were triaged", ["outcome", "entry"], registry=self.registry
        )
        self._gpu_hours = Counter(
            "torchtriage_gpu_hours_lost",
            "GPU hours that triaged runs lost, of those that ended",
            ["outcome", "entry"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "torchtriage_triage_seconds",
            "Seconds from the start of a triage to its end, waiting for a process included",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._broken = Gauge(
            "torchtriage_knowledge_broken",
            "1 if the knowledge folders cannot be loaded; the knowledge loaded before stays in use",
            registry=self.registry,
        )
        self._held_back = Gauge(
            "torchtriage_held_back",
            "Incidents and logs due for deletion that are held back, as the clock or the database may be wrong",
            ["what"],
            registry=self.registry,
        )
        self.held_back: dict[str, str] = {}
        for what in ("incidents", "logs"):
            self.hold_back(what)

    def serve(self, host: str, port: int) -> Callable[[], None]:
        """Shows them to anyone who asks there, for a process that has no page -> what ends that. Raises OSError."""
        server, thread = start_http_server(port, host, self.registry)

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return stop

    def accepted(self, count: int) -> None:
        self._accepted.inc(count)

    def knowledge_broken(self, broken: bool) -> None:
        self._broken.set(broken)

    def failed(self) -> None:
        self._failed.inc()

    def hold_back(self, what: str, count: int = 0, why: str = "") -> None:
        """So many `incidents` are due and not forgotten, or `logs` without an incident not removed; `held_back` says
        why, where there are any."""
        self._held_back.labels(what).set(count)
        self.held_back.pop(what, None)
        if count:
            self.held_back[what] = why

    def triaged(self, summary: VerdictSummary, seconds: float, provisional: bool) -> None:
        """The hours of a provisional verdict are not counted: they are in those of the one that replaces it."""
        labels = summary.outcome, summary.entry or ""
        self._triaged.labels(*labels).inc()
        if summary.gpu_hours and not provisional:
            self._gpu_hours.labels(*labels).inc(summary.gpu_hours)
        self._seconds.observe(seconds)
