"""Sends this process's counters to an OTLP endpoint as cumulative sums, with the names of `/metrics`."""

from __future__ import annotations

import logging
import time
from typing import Any
from uuid import uuid4

from prometheus_client import CollectorRegistry

import torchtriage
from torchtriage.chat.delivery_errors import Undelivered
from torchtriage.chat.otlp import SERVICE, OtlpEndpoint, attributes, resource
from torchtriage.services.service import Service

log = logging.getLogger(__name__)
_CUMULATIVE = 2  # the enum value of AggregationTemporality


class OtlpMetrics:
    """Each sum counts from the start, so the next request replaces one that failed."""

    def __init__(self, service: Service) -> None:
        settings = service.settings
        self._counters = service.counters
        self._resource = resource(str(uuid4()))
        self._not_before = 0.0  # monotonic time before which the endpoint wants no request
        self._endpoint = (
            OtlpEndpoint(service.channels.outgoing, settings.otlp_endpoint, settings.otlp_headers)
            if settings.otlp_endpoint and settings.otlp_metrics
            else None
        )

    def send(self) -> None:
        """Sends one request, unless there is no endpoint or it asked to wait. Logs what the endpoint rejects."""
        if self._endpoint is None or time.monotonic() < self._not_before:
            return
        sums = sums_of(self._counters.registry, self._counters.began, time.time_ns())
        scope = {"scope": {"name": SERVICE, "version": torchtriage.__version__}, "metrics": sums}
        request = {"resourceMetrics": [{"resource": self._resource, "scopeMetrics": [scope]}]}
        try:
            rejected, why = self._endpoint.post("metrics", request, "rejectedDataPoints")
        except Undelivered as problem:
            self._not_before = time.monotonic() + (problem.wait or 0)
            log.warning("metrics are not sent now: %s", problem.message)
        else:
            if rejected or why:
                log.warning("the OTLP endpoint rejected %d of the metrics' points: %s", rejected, why)


def sums_of(registry: CollectorRegistry, began: int, now: int) -> list[dict[str, Any]]:
    """Returns each counter as a monotonic OTLP sum. `began` and `now` are nanoseconds since 1970."""
    return [
        {
            "name": f"{family.name}_total",
            "description": family.documentation,
            "sum": {
                "aggregationTemporality": _CUMULATIVE,
                "isMonotonic": True,
                "dataPoints": [
                    {
                        "attributes": attributes(sample.labels),
                        "startTimeUnixNano": str(began),
                        "timeUnixNano": str(now),
                        "asDouble": sample.value,
                    }
                    for sample in family.samples
                    if sample.name == f"{family.name}_total"
                ],
            },
        }
        for family in registry.collect()
        if family.type == "counter"
    ]
