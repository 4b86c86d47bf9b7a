"""The Prometheus metrics of this process's work. Each service counts for itself."""

from __future__ import annotations

import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from torchtriage.domain.incident import VerdictSummary

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300)


class Counters:
    """`registry` contains all metrics and is not shared with other services in the process. `began` is the time at
    which counting began, in nanoseconds since 1970."""

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
            "GPU hours lost by triaged runs that have ended",
            ["outcome", "entry"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "torchtriage_triage_seconds",
            "Seconds from the start of a triage to its end, including the wait for a process",
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
            "Incidents and logs due for deletion that are held back because the clock or the database may be wrong",
            ["what"],
            registry=self.registry,
        )
        self.held_back: dict[str, str] = {}
        for what in ("incidents", "logs"):
            self.set_held_back(what)

    def serve(self, host: str, port: int) -> Callable[[], None]:
        """Serves the metrics over HTTP, for a process without pages. Returns a function that stops it.
        Raises OSError."""
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

    def set_held_back(self, what: str, count: int = 0, why: str = "") -> None:
        """Sets how many due `incidents`, or `logs` without an incident, are not deleted. `held_back` has
        the reasons."""
        self._held_back.labels(what).set(count)
        self.held_back.pop(what, None)
        if count:
            self.held_back[what] = why

    def triaged(self, summary: VerdictSummary, seconds: float, provisional: bool) -> None:
        """Counts a triage. GPU hours of a provisional verdict do not count, because the final verdict includes them."""
        labels = summary.outcome, summary.entry or ""
        self._triaged.labels(*labels).inc()
        if summary.gpu_hours and not provisional:
            self._gpu_hours.labels(*labels).inc(summary.gpu_hours)
        self._seconds.observe(seconds)
