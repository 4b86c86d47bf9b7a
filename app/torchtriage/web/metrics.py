"""`/metrics` for Prometheus. Metrics that all processes share are read from the database."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from torchtriage.services.outbox import count_outbox
from torchtriage.services.service import Service
from torchtriage.storage import incidents
from torchtriage.web.authentication import Reader
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.errors import error_responses

router = APIRouter(tags=["health"])


@router.get(
    "/metrics", responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **error_responses()}
)
def metrics(service: ServiceDep, _: Reader) -> Response:
    """Metrics of this process and the queue, for Prometheus."""
    queue = CollectorRegistry()
    queue.register(_Queue(service))
    queue.register(_Outbox(service))
    text = generate_latest(service.counters.registry) + generate_latest(queue)
    return Response(text, media_type=CONTENT_TYPE_LATEST)


class _Queue(Collector):
    """How many incidents wait for their triage, and for how long."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[GaugeMetricFamily]:
        with self._service.database.reading() as session:
            depth, oldest = incidents.queued(session)
        age = (datetime.now(UTC) - oldest).total_seconds() if oldest else 0
        yield GaugeMetricFamily("torchtriage_queue_depth", "Incidents whose triage is waiting or running", depth)
        yield GaugeMetricFamily("torchtriage_queue_age_seconds", "Age of the oldest of these incidents", max(age, 0))


class _Outbox(Collector):
    """Counts messages by channel and state."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(
            "torchtriage_outbox",
            "Notices by channel and state (waiting, ready, sent, failed)",
            labels=["channel", "state"],
        )
        for (channel, state), count in sorted(count_outbox(self._service).items()):
            family.add_metric([channel, state], count)
        yield family
