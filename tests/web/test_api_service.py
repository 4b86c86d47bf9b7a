from __future__ import annotations

import re
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import TypeAdapter

from torchtriage.domain.incident import Job, NodeReport
from torchtriage.services.heartbeats import Heartbeats
from torchtriage.settings import Settings
from torchtriage.web.api.response_models import JobForm
from torchtriage.web.app import create_app

METHODS = {"get", "post", "patch", "delete", "put"}
ERROR, STATUS = ({"$ref": f"#/components/schemas/{name}"} for name in ("ErrorBody", "StatusForm"))


@pytest.fixture
def document(client: TestClient) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/openapi.json").json()
    return found


def test_building_the_application_opens_nothing(tmp_path: Path) -> None:
    create_app(Settings(data_dir=tmp_path / "data"))
    assert list(tmp_path.iterdir()) == []


def test_routes_are_made_once_for_all_applications(tmp_path: Path) -> None:
    first, second = ([*create_app(Settings(data_dir=tmp_path)).router.routes] for _ in range(2))
    assert sum(route is other for route, other in zip(first, second, strict=True)) > 10


def test_alive_and_ready(client: TestClient) -> None:
    for path in ("/healthz", "/readyz"):
        assert client.get(path).json() == {"status": "ok"}


def test_not_ready_where_logs_cannot_be_written(client: TestClient, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "logs")
    (tmp_path / "logs").touch()
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "5"
    assert answer.json()["error"]["code"] == "storage_unavailable"
    assert client.post("/api/v1/incidents", content=b"a log").status_code == 503
    assert client.get("/healthz").status_code == 200


def test_not_ready_where_a_loop_is_silent_and_the_metrics_tell_for_how_long(client: TestClient) -> None:
    heartbeats: Heartbeats = client.app.state.service.heartbeats  # type: ignore[attr-defined]
    heartbeats.expect("queue", 0)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert answer.json()["error"]["code"] == "not_ready"
    assert list(answer.json()["error"]["detail"]["loops"]) == ["queue"]
    assert 'torchtriage_heartbeat_age_seconds{loop="queue"}' in client.get("/metrics").text
    heartbeats.expect("queue", 60)
    assert client.get("/readyz").status_code == 200
    assert 'torchtriage_heartbeat_age_seconds{loop="upkeep"}' in client.get("/metrics").text


def test_the_knowledge_is_read(client: TestClient) -> None:
    items = client.get("/api/v1/knowledge").json()["items"]
    assert {"id", "kind", "area", "owner", "title"} == set(items[0])
    assert [item["id"] for item in items] == sorted(item["id"] for item in items)
    assert all(item["area"] == "cuda" for item in client.get("/api/v1/knowledge?area=cuda").json()["items"])
    entry = client.get("/api/v1/knowledge/cuda.oom").json()
    assert entry["title"]["zh"]
    assert entry["fixes"][0]["title"]["en"]
    assert client.get("/api/v1/knowledge/nccl.timeout").json()["roles"] == ["distributed-symptom", "timeout"]


@pytest.mark.parametrize(("lang", "title"), [("en", "Every process loads"), ("zh", "每个进程都")])
def test_entries_are_found_by_symptom(client: TestClient, lang: str, title: str) -> None:
    query: dict[str, str | int] = {"q": "0号卡 uses more memory than the other gpus", "lang": lang, "limit": 3}
    answer = client.get("/api/v1/knowledge/search", params=query).json()
    assert answer["next"] is None
    assert len(answer["items"]) == 3
    assert set(answer["items"][0]) == {"entry", "title", "score"}
    assert answer["items"][0]["entry"] == "checkpoint.load-on-gpu0"
    assert answer["items"][0]["title"].startswith(title)


def test_a_search_that_finds_nothing_is_empty_and_a_wrong_one_refused(client: TestClient) -> None:
    search = "/api/v1/knowledge/search"
    assert client.get(search).json() == {"items": [], "next": None}
    assert client.get(search, params={"q": "zzzqq"}).json()["items"] == []
    for wrong in ({"q": "x" * 501}, {"lang": "fr"}, {"limit": "0"}, {"query": "oom"}):
        assert client.get(search, params=wrong).status_code == 422


def test_every_route_of_the_api_is_in_the_document_with_its_errors(document: dict[str, Any]) -> None:
    routes = {
        (method.upper(), path): operation
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if method in METHODS
    }
    assert {path for _, path in routes} == {
        "/api/v1/incidents", "/api/v1/incidents/{incident}", "/api/v1/incidents/{incident}/brief",
        "/api/v1/incidents/{incident}/compare/{before}",
        "/api/v1/incidents/{incident}/log", "/api/v1/triage",
        "/api/v1/groups", "/api/v1/groups/{group}", "/api/v1/knowledge", "/api/v1/knowledge/{entry}",
        "/api/v1/knowledge/search", "/api/v1/incidents/{incident}/feedback", "/api/v1/groups/{group}/merge",
        "/api/v1/groups/{group}/split", "/api/v1/stats", "/api/v1/hosts", "/api/v1/dashboard", "/api/v1/changes",
        "/api/v1/drafts", "/api/v1/drafts/{draft}", "/api/v1/drafts/check", "/api/v1/drafts/{draft}/back-test",
        "/api/v1/drafts/{draft}/state",
        "/api/v1/decision", "/api/v1/decisions", "/api/v1/decisions/score", "/logs",
        "/api/v1/run-summaries", "/api/v1/groups/{group}/issues",
        "/v1/logs", "/api/v1/gathered-logs", "/api/v1/gathered-logs/{job}/end",
        "/metrics", "/healthz", "/readyz", "/client.py", "/slack/commands", "/slack/interactions", "/slack/events",
    }  # fmt: skip
    for route, operation in routes.items():
        assert {"500", "503"} <= set(operation["responses"]), route
        for status, answer in operation["responses"].items():
            if int(status) >= 400:
                schema = answer["content"]["application/json"]["schema"]
                forms = schema.get("anyOf", [schema])
                known = (ERROR, STATUS) if route[1] == "/v1/logs" else (ERROR,)  # OTLP has a form of its own
                assert all(form in known for form in forms), (route, status)


def test_the_document_describes_how_to_send_a_log(document: dict[str, Any]) -> None:
    post = document["paths"]["/api/v1/incidents"]["post"]
    assert set(post["requestBody"]["content"]) > {"text/plain", "application/gzip", "multipart/form-data"}
    assert {"200", "201", "202", "400", "408", "413", "415", "422"} <= set(post["responses"])
    assert "Location" in post["responses"]["201"]["headers"]
    names = {parameter["name"] for parameter in post["parameters"]}
    assert {"job_id", "attempt", "label", "wait"} <= names


def test_the_document_describes_the_fields_of_a_job(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    job = schemas["JobForm"]
    assert set(job["properties"]) == {field.name for field in fields(Job)}
    assert "required" not in job
    assert job["properties"]["job_id"] == {"type": "string", "title": "Job Id"}
    assert job["properties"]["exit_code"]["type"] == "integer"
    assert job["properties"]["provisional"]["type"] == "boolean"
    assert job["properties"]["labels"]["additionalProperties"] == {"type": "string"}
    report = {"$ref": "#/components/schemas/NodeReportForm"}
    assert job["properties"]["reports"]["additionalProperties"] == report
    for name in ("IncidentForm", "OneIncidentForm", "GatheredJobForm"):
        assert schemas[name]["properties"]["job"] == {"$ref": "#/components/schemas/JobForm"}


def test_the_json_of_a_job_fits_its_description() -> None:
    reports = {"0": NodeReport("sha"), "1": NodeReport("sha2", "gpu-1", 2, False)}
    whole = Job(
        "17", "pretrain", attempt=0, exit_code=-9, provisional=False, nodes=2, labels={"a": "b"}, reports=reports
    )
    for job in (Job(), whole):
        assert (
            TypeAdapter(JobForm).validate_python(job.to_json(), strict=True).model_dump(exclude_unset=True)
            == job.to_json()
        )


def test_every_route_is_in_the_documentation(document: dict[str, Any]) -> None:
    written = (Path(__file__).resolve().parents[2] / "docs" / "api.md").read_text()
    for path in document["paths"]:
        assert re.sub(r"\{\w+\}", "{id}", path) in re.sub(r"\{\w+\}", "{id}", written), path
