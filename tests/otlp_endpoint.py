"""A fake OTLP/HTTP endpoint on loopback. It rejects requests that do not fit the protobuf definition, and keeps records
and sums."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.json_format import ParseDict, ParseError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from tests.http_server import Asked, Told, serving

TOKEN = "Bearer otlp-of-a-test"  # not a secret: made up for tests


@dataclass
class FakeEndpoint:
    """`refusals` are answered first, each once. `partial` is the message of a partial success."""

    url: str = ""
    authorization: str | None = None
    refusals: list[Told] = field(default_factory=list)
    partial: dict[str, Any] | None = None
    asked: list[str] = field(default_factory=list)
    logs: list[ExportLogsServiceRequest] = field(default_factory=list)
    metrics: list[ExportMetricsServiceRequest] = field(default_factory=list)

    def answer(self, asked: Asked) -> Told:
        self.asked.append(asked.path)
        if self.refusals:
            return self.refusals.pop(0)
        if self.authorization and asked.headers.get("Authorization") != self.authorization:
            return Told(b'{"message": "Unauthenticated"}', 401)
        if asked.headers.get_all("Content-Type") != ["application/json"]:
            return Told(b"", 415)
        body = json.loads(asked.body)
        try:
            if (asked.method, asked.path) == ("POST", "/v1/logs"):
                self.logs.append(ParseDict(body, ExportLogsServiceRequest()))
            elif (asked.method, asked.path) == ("POST", "/v1/metrics"):
                self.metrics.append(ParseDict(body, ExportMetricsServiceRequest()))
            else:
                return Told(b"404 page not found", 404)
        except ParseError as error:
            return Told(json.dumps({"code": 3, "message": str(error)}).encode(), 400)
        if names := [name for name in _enums(body) if isinstance(name, str)]:
            return Told(json.dumps({"code": 3, "message": f"an enum by its name: {names}"}).encode(), 400)
        return Told(json.dumps({"partialSuccess": self.partial} if self.partial else {}).encode())

    def records(self) -> list[dict[str, Any]]:
        """Returns each record with its severity, body and attributes."""
        return [
            {
                "severity": record.severity_number,
                "level": record.severity_text,
                "event": record.event_name,
                "time": record.time_unix_nano,
                "body": record.body.string_value,
                **_values(record.attributes),
            }
            for request in self.logs
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    def sums(self) -> dict[tuple[str, ...], float]:
        """Returns {(name, values of its attributes): value} of the latest request."""
        found = {}
        for resource in self.metrics[-1].resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    assert metric.sum.is_monotonic
                    assert metric.sum.aggregation_temporality == 2
                    for point in metric.sum.data_points:
                        assert 0 < point.start_time_unix_nano < point.time_unix_nano
                        found[(metric.name, *_values(point.attributes).values())] = point.as_double
        return found


@contextmanager
def fake_endpoint(authorization: str | None = None) -> Iterator[FakeEndpoint]:
    made = FakeEndpoint(authorization=authorization)
    with serving(made.answer) as made.url:
        yield made


def _values(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


def _enums(body: Any) -> Iterator[Any]:
    if isinstance(body, list):
        for inner in body:
            yield from _enums(inner)
    elif isinstance(body, dict):
        for name, inner in body.items():
            if name in ("severityNumber", "aggregationTemporality"):
                yield inner
            yield from _enums(inner)
