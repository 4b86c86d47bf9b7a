"""`/v1/logs` as OTLP/HTTP wants it, in JSON and in protobuf."""

from __future__ import annotations

import dataclasses
import gzip
import json
from typing import Any, cast

import pytest
from fastapi.testclient import TestClient

from tests.otlp import OUT_OF_MEMORY, pod, record, request, resource
from torchtriage.services.service import Service

JSON, PROTOBUF = {"Content-Type": "application/json"}, {"Content-Type": "application/x-protobuf"}
ADDRESS = "/v1/logs"


def gathered(client: TestClient) -> list[dict[str, Any]]:
    return cast(list[dict[str, Any]], client.get("/api/v1/gathered-logs").json()["items"])


def test_json_is_kept_before_the_answer_and_becomes_an_incident(client: TestClient) -> None:
    answer = client.post(ADDRESS, content=request(resource(pod(3), *map(record, OUT_OF_MEMORY))), headers=JSON)
    assert (answer.status_code, answer.json(), answer.headers["content-type"]) == (200, {}, "application/json")
    (job,) = gathered(client)
    assert (job["job"]["job_name"], job["lines"], job["ended"]) == ("llama", 5, False)
    made = client.post(f"/api/v1/gathered-logs/{job['id']}/end")
    assert made.status_code == 201
    assert client.get(made.headers["Location"]).json()["job"]["cluster"] == "blue"
    assert gathered(client) == []
    assert client.post(f"/api/v1/gathered-logs/{job['id']}/end").status_code == 404


def test_records_without_a_job_are_a_partial_success(client: TestClient) -> None:
    body = request(resource({}, record("a"), record("b")), resource(pod(0), record("c")))
    answer = client.post(ADDRESS, content=body, headers=JSON)
    assert answer.status_code == 200
    partial = answer.json()["partialSuccess"]
    assert partial["rejectedLogRecords"] == "2"
    assert "torchtriage.job.id" in partial["errorMessage"]
    assert gathered(client)[0]["lines"] == 1


def test_a_record_that_we_sent_ourselves_makes_no_incident(client: TestClient) -> None:
    own = record("Rank 3 ran out of memory.", torchtriage__incident="17", torchtriage__job__id="4711")
    answer = client.post(ADDRESS, content=request(resource({"service.name": "torchtriage"}, own)), headers=JSON)
    assert answer.json()["partialSuccess"]["rejectedLogRecords"] == "1"
    assert gathered(client) == []


@pytest.mark.parametrize("body", [b"{}", b'{"resourceLogs": []}', request(resource(pod(0)))])
def test_an_empty_request_is_a_success(client: TestClient, body: bytes) -> None:
    assert client.post(ADDRESS, content=body, headers=JSON).json() == {}
    assert gathered(client) == []


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", JSON, 400),
        (b"[]", JSON, 400),
        (b'{"resourceLogs": [{"resource": {"attributes": [{"value": 7}]}}]}', JSON, 400),
        (b"[" * 100_000, JSON, 400),
        (b'{"resourceLogs": [{"scopeLogs": [{"logRecords": [{"timeUnixNano": 1e999}]}]}]}', JSON, 400),
        (b"{}", {"Content-Type": "text/plain"}, 415),
        (b"{}", JSON | {"Content-Encoding": "br"}, 415),
        (gzip.compress(b"{}")[:-3], JSON | {"Content-Encoding": "gzip"}, 400),
        (gzip.compress(b"{}") * 2, JSON | {"Content-Encoding": "gzip"}, 400),
        (gzip.compress(b" " * (21 << 20)), JSON | {"Content-Encoding": "gzip"}, 413),
    ],
)
def test_an_unreadable_request_is_refused_permanently(client: TestClient, body: bytes, headers: dict[str, str], status: int) -> None:  # fmt: skip
    answer = client.post(ADDRESS, content=body, headers=headers)
    assert answer.status_code == status
    assert answer.json()["message"]
    assert "retry-after" not in answer.headers


def test_gzip_is_taken(client: TestClient) -> None:
    body = gzip.compress(request(resource(pod(0), record("a"))))
    assert client.post(ADDRESS, content=body, headers=JSON | {"Content-Encoding": "gzip"}).status_code == 200
    assert gathered(client)[0]["lines"] == 1


def test_where_there_is_no_room_a_collector_waits(client: TestClient) -> None:
    service = cast(Service, client.app.state.service)  # type: ignore[attr-defined]
    service.settings = dataclasses.replace(service.settings, otlp_total_bytes=10)
    answer = client.post(ADDRESS, content=request(resource(pod(0), record("a" * 20))), headers=JSON)
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "60")
    assert "TRIAGE_OTLP_TOTAL_BYTES" in answer.json()["message"]


def test_protobuf_is_answered_in_protobuf(client: TestClient) -> None:
    service = pytest.importorskip("opentelemetry.proto.collector.logs.v1.logs_service_pb2")
    from google.protobuf.json_format import Parse

    told = service.ExportLogsServiceRequest()
    Parse(request(resource(pod(3), *map(record, OUT_OF_MEMORY)), resource({}, record("nobody's"))), told, ignore_unknown_fields=True)  # fmt: skip
    body = gzip.compress(told.SerializeToString())
    answer = client.post(ADDRESS, content=body, headers=PROTOBUF | {"Content-Encoding": "gzip"})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/x-protobuf")
    read = service.ExportLogsServiceResponse.FromString(answer.content)
    assert read.partial_success.rejected_log_records == 1
    (job,) = gathered(client)
    assert (job["lines"], job["job"]["job_name"]) == (5, "llama")
    empty = client.post(ADDRESS, content=b"", headers=PROTOBUF)
    assert (empty.status_code, empty.content) == (200, b"")
    bad = client.post(ADDRESS, content=b"\xff\xff", headers=PROTOBUF)
    assert (bad.status_code, bad.headers["content-type"]) == (400, "application/x-protobuf")
    field, low, high, message = bad.content[0], bad.content[1], bad.content[2], bad.content[3:]
    assert (field, low & 127 | high << 7) == (
        0x12,
        len(message),
    )  # field 2 of a Status, its message of 128 bytes or more
    assert message.decode().startswith("the body is not an ExportLogsServiceRequest")


def test_protobuf_and_json_are_read_alike(client: TestClient) -> None:
    service = pytest.importorskip("opentelemetry.proto.collector.logs.v1.logs_service_pb2")
    from google.protobuf.json_format import Parse

    from torchtriage.web.api.otlp_decoding import resources

    values = {"arrayValue": {"values": [{"intValue": "7"}, {"boolValue": True}, {"doubleValue": 0.5}]}}
    body = request(resource(pod(0), record(values, 1, rank={"intValue": "3"}), record("x", 2, "WARN")))
    told = service.ExportLogsServiceRequest()
    Parse(body, told, ignore_unknown_fields=True)
    alike = [
        [(one.attributes, list(one.records)) for one in resources(content, kind)]
        for content, kind in ((body, "application/json"), (told.SerializeToString(), "application/x-protobuf"))
    ]
    assert alike[0] == alike[1]
    assert json.loads(alike[0][0][1][0].body) == [7, True, 0.5]
