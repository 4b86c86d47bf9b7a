from __future__ import annotations

import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from tests.services.logs import OUT_OF_MEMORY
from tests.web.broken_engine import refuse_logs


def read(client: TestClient) -> dict[tuple[str, ...], float]:
    """Returns (name, values of its labels) → value."""
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_finished_and_waiting_work_is_counted(both: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read(both)
    assert (before["torchtriage_accepted_total",], before["torchtriage_queue_depth",]) == (0, 0)
    for _ in range(2):  # the second is a repeat
        both.post("/api/v1/incidents?job_id=1", content=OUT_OF_MEMORY)
    refuse_logs(both, monkeypatch)
    both.post("/api/v1/incidents?job_id=2", content=OUT_OF_MEMORY)
    after = read(both)
    assert after["torchtriage_accepted_total",] == 2
    assert after["torchtriage_triaged_total", "cuda.oom", "explained"] == 1
    assert after["torchtriage_triage_seconds_count",] == 1
    assert after["torchtriage_failed_total",] == 1
    assert (after["torchtriage_queue_depth",], after["torchtriage_queue_age_seconds",]) == (0, 0)
