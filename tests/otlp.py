"""Requests of an OpenTelemetry Collector, in JSON."""

from __future__ import annotations

import json
from typing import Any

BEGAN = 1_777_626_311  # seconds: 2026-05-01T09:05:11Z
NANO = 10**9


def attributes(given: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"key": name, "value": value if isinstance(value, dict) else {"stringValue": value}}
        for name, value in given.items()
    ]


def record(body: str | dict[str, Any], at: float = 0, level: str = "", **own: Any) -> dict[str, Any]:
    """Returns a record, `at` seconds after BEGAN."""
    value = body if isinstance(body, dict) else {"stringValue": body}
    return {
        "timeUnixNano": str(round((BEGAN + at) * NANO)),
        "observedTimeUnixNano": str((BEGAN + 999) * NANO),
        "severityText": level,
        "body": value,
        "attributes": attributes({name.replace("__", "."): value for name, value in own.items()}),
        "aFieldOfLaterReleases": 1,
    }


def resource(given: dict[str, Any], *records: dict[str, Any]) -> dict[str, Any]:
    return {
        "resource": {"attributes": attributes(given)},
        "scopeLogs": [{"scope": {"name": "otelcol"}, "logRecords": list(records)}],
    }


def request(*resources: dict[str, Any]) -> bytes:
    return json.dumps({"resourceLogs": list(resources)}).encode()


def pod(rank: int, job: str = "llama", **more: str) -> dict[str, str]:
    return {
        "k8s.job.name": job,
        "k8s.pod.name": f"{job}-worker-{rank}",
        "k8s.namespace.name": "ml",
        "k8s.cluster.name": "blue",
        "service.name": "unknown_service:python",
        **more,
    }


OUT_OF_MEMORY = (
    "step 41 loss 2.31",
    "Traceback (most recent call last):",
    '  File "/home/ann/train.py", line 88, in <module>',
    "    loss = model(batch)",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB of "
    "which 1.10 GiB is free.",
)
