"""The metrics of the watcher itself, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge

_NAME = "torchtriage_watcher_"


class Counters:
    """The metrics of one watcher. Each has its own registry, so that several watchers can run in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.pods = self._gauge("pods", "Pods that belong to a known job.")
        self.attempts = self._gauge("attempts_open", "Attempts that wait for their other pods to end.")
        self.waiting = self._gauge("reports_waiting", "Reports that the service has not accepted yet.")
        self.watching = self._gauge("watching", "1 if the namespace is being watched.", "namespace")
        self.failures = self._counter("failures", "Failed containers and pods.", "reason")
        self.reports = self._counter("reports", "Attempts by outcome of their report.", "outcome")
        self.logs = self._counter("logs", "Logs by whether they were read or are missing.", "outcome")
        self.interruptions = self._counter("interruptions", "Interruptions of a watch.", "namespace")

    def _gauge(self, name: str, sentence: str, *labels: str) -> Gauge:
        return Gauge(_NAME + name, sentence, labels, registry=self.registry)

    def _counter(self, name: str, sentence: str, *labels: str) -> Counter:
        return Counter(_NAME + name, sentence, labels, registry=self.registry)
