"""The route that takes summaries of runs: what is kept, bounded and redacted, who may read, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select

from tests.logs import text, traceback
from torchtriage.storage.tables import RunSummaryRow

BAD = text("step 1 loss 2.5", traceback("KeyError: 'labels'"))
ADDRESS = "/api/v1/run-summaries"


def failed(client: TestClient, job_id: str, **told: str) -> str:
    query = {"wait": "30", "job_name": "bert", "job_id": job_id, **told}
    return str(client.post("/api/v1/incidents", params=query, content=BAD + job_id.encode()).json()["id"])


def good(client: TestClient, job_id: str, **told: Any) -> None:
    answer = client.post(ADDRESS, json={"job_name": "bert", "job_id": job_id, **told})
    assert (answer.status_code, answer.json()) == (200, {"since_good": None})


def changes(client: TestClient, incident: str) -> list[str]:
    told = client.get(f"/api/v1/incidents/{incident}").json()["since_good"]
    return [change["says"]["en"] for change in told["changes"]] if told else []


def test_the_last_good_run_before_the_failure_counts(both: TestClient) -> None:
    good(both, "1", versions={"torch": "2.4.0"})
    good(both, "2", versions={"torch": "2.5.1"})
    incident = failed(both, "3")
    good(both, "4", versions={"torch": "2.7.0"})
    told = both.post(ADDRESS, json={"incident": incident, "job_id": "3", "versions": {"torch": "2.6.0"}}).json()
    assert [change["says"] for change in told["since_good"]["changes"]] == [
        {"en": "torch 2.5.1 → 2.6.0", "zh": "torch 2.5.1 → 2.6.0"}]  # fmt: skip
    assert changes(both, incident) == ["torch 2.5.1 → 2.6.0"]
    assert changes(both, failed(both, "9", cluster="other")) == []
    assert both.delete(f"/api/v1/incidents/{incident}").status_code == 204


def test_nodes_of_one_job_are_one_run(client: TestClient) -> None:
    good(client, "1", hosts=["gpu-001"])
    good(client, "1", hosts=["gpu-[002-003]"])
    incident = failed(client, "2")
    told = client.post(ADDRESS, json={"incident": incident, "job_id": "2", "hosts": ["gpu-003", "gpu-021"]}).json()
    assert [change["says"]["zh"] for change in told["since_good"]["changes"]] == ["新增主机 gpu-021"]


def test_good_runs_are_bounded(client: TestClient) -> None:
    for job in range(5):
        good(client, str(job), versions={"torch": f"2.{job}"})
    with client.app.state.service.database.reading() as session:  # type: ignore[attr-defined]
        assert session.execute(select(func.count()).select_from(RunSummaryRow)).scalar_one() == 3
    incident = failed(client, "9")
    client.post(ADDRESS, json={"incident": incident, "job_id": "9", "versions": {"torch": "2.6"}})
    assert changes(client, incident) == ["torch 2.4 → 2.6"]


def test_secrets_are_taken_out(client: TestClient) -> None:
    good(client, "1", environment={"X": "1"})
    incident = failed(client, "2")
    environment = {"X": "1", "NCCL_EXTRA": "hf_" + "aB3dE6gH9kL2nP5rS8uV1xY4zA7cD0fG3h"}
    answer = client.post(ADDRESS, json={"incident": incident, "job_id": "2", "environment": environment})
    assert answer.status_code == 200
    assert "aB3dE6gH9" not in answer.text + client.get(f"/incidents/{incident}").text
    assert changes(client, incident) == []


def test_a_stored_healthy_run_counts_too(client: TestClient) -> None:
    steps = [f"step {step} loss {3 / (step + 1):.4f}" for step in range(30)]
    log = text("PyTorch version: 2.5.1", steps, "Training finished")
    kept = client.post(
        "/api/v1/incidents", params={"wait": "30", "job_name": "bert", "job_id": "1", "image": "a:1"}, content=log
    )
    incident = failed(client, "2", image="a:2")
    told = client.get(f"/api/v1/incidents/{incident}").json()["since_good"]
    assert told["incident"] == kept.json()["id"]
    assert changes(client, incident) == ["image a:1 → a:2"]
    page = client.get(f"/incidents/{incident}").text
    assert f'href="/incidents/{incident}/compare"' in page
    assert "image a:1 → a:2" in page


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"job_name": "a", "lines": ["x" * 400] * 200}, 422),
        ({"job_name": "a", "phases": {"start": -1}}, 422),
        ({"job_name": "a", "more": 1}, 422),
        ({"incident": "999", "job_id": "1"}, 404),
    ],
)
def test_an_invalid_summary_is_refused(client: TestClient, body: dict[str, Any], status: int) -> None:
    answer = client.post(ADDRESS, json=body)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


def test_a_summary_of_another_job_is_refused(client: TestClient) -> None:
    assert client.post(ADDRESS, json={"incident": failed(client, "2"), "job_id": "3"}).status_code == 400
