"""What the watcher counts of itself, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge

_NAME = "torchtriage_watcher_"


class Counters:
    """One registry a watcher, so that several can live in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.pods = self._gauge("pods", "Pods of jobs that are known.")
        self.attempts = self._gauge("attempts_open", "Attempts whose pods are still being waited for.")
        self.waiting = self._gauge("reports_waiting", "Reports that the service has not taken yet.")
        self.watching = self._gauge("watching", "1 where a namespace is watched.", "namespace")
        self.failures = self._counter("failures", "Containers and pods that ended badly.", "reason")
        self.reports = self._counter("reports", "Attempts by what became of them.", "outcome")
        self.logs = self._counter("logs", "Logs by whether they could be read.", "outcome")
        self.interruptions = self._counter("interruptions", "Times that a watch broke off.", "namespace")

    def _gauge(self, name: str, sentence: str, *labels: str) -> Gauge:
        return Gauge(_NAME + name, sentence, labels, registry=self.registry)

    def _counter(self, name: str, sentence: str, *labels: str) -> Counter:
        return Counter(_NAME + name, sentence, labels, registry=self.registry)
