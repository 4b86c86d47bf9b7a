from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, cast

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import TypeAdapter

from tests.services.logs import HEALTHY, OUT_OF_MEMORY, tar
from torchtriage.reading.zstd import compress
from torchtriage.web.api.incidents import SubmitRoute
from torchtriage.web.api.response_models import GroupsForm, IncidentForm, IncidentsForm, LinesForm

URL = "/api/v1/incidents"
SLOW = {"wait": "60"}  # these tests are about the verdict, however busy the machine is


def send(client: TestClient, log: bytes = OUT_OF_MEMORY, **job: Any) -> dict[str, Any]:
    answer = client.post(URL, content=log, params=SLOW | job)
    assert answer.status_code in (200, 201), answer.text
    found: dict[str, Any] = answer.json()
    return found


def problem(answer: Any, status: int) -> dict[str, Any]:
    """Returns the error of an answer, which has the one form that all have."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message", "detail"}
    assert "\n" not in body["error"]["message"]
    found: dict[str, Any] = body["error"]
    return found


def stored(folder: Path) -> list[Path]:
    return [path for path in (folder / "logs").rglob("*") if path.is_file() and path.name != "lock"]


def test_a_log_in_a_verdict_out(both: TestClient) -> None:
    answer = both.post(URL, content=OUT_OF_MEMORY, params=SLOW)
    incident = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"{URL}/{incident['id']}"
    assert incident["verdict"]["root_cause"]["entry"] == "cuda.oom"
    assert incident["group"] == {"id": incident["group"]["id"], "status": "open", "count": 1}
    assert incident["log"]["bytes"] == len(OUT_OF_MEMORY)
    assert (incident["state"], incident["failure"]) == ("triaged", None)
    assert both.get(answer.headers["location"]).json() == incident | {"since_good": None}
    TypeAdapter(IncidentForm).validate_python(incident)


def test_a_sender_that_does_not_wait_gets_202_and_reads_the_verdict_later(both: TestClient) -> None:
    answer = both.post(URL, content=OUT_OF_MEMORY, params={"wait": 0})
    assert answer.status_code in (201, 202)
    again = both.post(URL, content=OUT_OF_MEMORY, params=SLOW)
    assert again.status_code == 200
    assert again.json()["id"] == answer.json()["id"]
    assert again.json()["state"] == "triaged"


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/octet-stream", ""])
def test_the_body_is_the_log_whatever_curl_calls_it(client: TestClient, kind: str) -> None:
    answer = client.post(URL, content=b"a=b&c=%20d\n" + OUT_OF_MEMORY, headers={"Content-Type": kind}, params=SLOW)
    assert answer.status_code == 201
    line = client.get(f"{answer.headers['location']}/log", params={"lines": 1}).json()["lines"][0]
    assert line == {"line": 1, "text": "a=b&c=%20d", "cut": False}


def test_compressed_bodies_and_bundles_and_forms(client: TestClient) -> None:
    compressed = {
        "gzip": gzip.compress(OUT_OF_MEMORY),
        "zstd": compress(OUT_OF_MEMORY),
    }
    first = send(client)
    for encoding, body in compressed.items():
        for headers in ({"Content-Encoding": encoding}, {"Content-Type": f"application/{encoding}"}):
            assert client.post(URL, content=body, headers=headers, params=SLOW).json()["id"] == first["id"]
    files = {"attempt_0/0/stderr.log": HEALTHY, "attempt_0/1/stderr.log": OUT_OF_MEMORY}
    bundle = client.post(URL, content=tar(files), headers={"Content-Type": "application/gzip"}, params=SLOW)
    form = client.post(URL, files=[("log", (name, content)) for name, content in files.items()], params=SLOW)
    assert [file["name"] for file in bundle.json()["log"]["files"]] == list(files)
    assert form.status_code == 200
    assert form.json()["id"] == bundle.json()["id"]
    assert bundle.json()["verdict"]["root_cause"]["evidence"][0]["file"] == "attempt_0/1/stderr.log"


def test_the_job_parameters_are_stored(client: TestClient) -> None:
    job: dict[str, Any] = {
        "job_id": "4711", "job_name": "llama", "cluster": "blue", "scheduler": "slurm", "user": "安", "queue": "large",
        "attempt": "2", "node_rank": "0", "exit_code": "-9", "state": "FAILED", "started_at": "2026-05-01T08:00:00",
        "ended_at": "Unknown", "gpus": "512", "image": "", "commit": "abc", "url": "https://ci/1",
        "label": ["team:vision", "note:a:b"],
    }  # fmt: skip
    assert send(client, **job)["job"] == {
        "job_id": "4711", "job_name": "llama", "cluster": "blue", "scheduler": "slurm", "user": "安", "queue": "large",
        "attempt": 2, "node_rank": 0, "exit_code": -9, "state": "FAILED", "started_at": "2026-05-01T08:00:00Z",
        "gpus": 512, "commit": "abc", "url": "https://ci/1", "labels": {"team": "vision", "note": "a:b"},
    }  # fmt: skip


def test_the_route_of_its_own_reads_a_query_as_the_documented_one(client: TestClient) -> None:
    app = cast(FastAPI, client.app)
    routes = app.router.routes
    (own,) = (route for route in routes if isinstance(route, SubmitRoute))
    queries: list[Any] = [
        [("user", "ann"), ("user", "bob"), ("unknown", "x"), ("label", "a:1"), ("label", "b:2"), ("label", "a:3")],
        {"label": "one:1", "image": " ", "gpus": "", "attempt": "1", "wait": "0", "started_at": "1770000000"},
        {"user": "a+b c%20d", "job_id": "安", "ended_at": "n/a"},
    ]
    jobs = [client.post(URL, content=HEALTHY, params=query).json()["job"] for query in queries]
    routes.remove(own)
    assert [client.post(URL, content=OUT_OF_MEMORY, params=query).json()["job"] for query in queries] == jobs
    assert jobs[0] == {"user": "bob", "labels": {"a": "3", "b": "2"}}


@pytest.mark.parametrize(
    "wrong",
    [
        {"attempt": "-1"}, {"attempt": "x"}, {"gpus": str(2**31)}, {"started_at": "yesterday"}, {"url": "javascript:x"},
        {"label": "novalue"}, {"label": ":x"}, {"job_id": "x" * 501}, {"job_id": "a\0b"}, {"user": "a\nb"},
        {"wait": "61"}, {"wait": "nan"}, {"started_at": "0001-01-01T00:00:00+14:00"},
    ],
)  # fmt: skip
def test_an_invalid_job_parameter_is_named(client: TestClient, wrong: dict[str, str], tmp_path: Path) -> None:
    error = problem(client.post(URL, content=OUT_OF_MEMORY, params=wrong), 422)
    assert error["code"] == "invalid_request"
    assert next(iter(wrong)) in error["message"]
    assert stored(tmp_path) == []


MULTIPART = {"Content-Type": "multipart/form-data; boundary=x"}
PART = b'--x\r\nContent-Disposition: form-data; name="log"; filename="../../a"\r\n\r\nstep 1\n'


@pytest.mark.parametrize("route", [URL, "/api/v1/triage"])
@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (b"", {}, 422, "unreadable_log"),
        (b"", {"Content-Encoding": "gzip"}, 422, "unreadable_log"),
        (bytes(range(256)) * 50, {}, 422, "unreadable_log"),
        (gzip.compress(OUT_OF_MEMORY)[:90], {"Content-Encoding": "gzip"}, 422, "unreadable_log"),
        (gzip.compress(OUT_OF_MEMORY)[:90], {}, 422, "unreadable_log"),
        (tar({"a.log": OUT_OF_MEMORY})[:90], {"Content-Type": "application/gzip"}, 422, "unreadable_log"),
        (b"x\n" * 600_000, {}, 413, "log_too_large"),
        (b"x\n" * 20_000_000, {}, 413, "log_too_large"),
        (gzip.compress(b"x\n" * 600_000), {"Content-Encoding": "gzip"}, 413, "log_too_large"),
        (tar({"a.log": b"x\n" * 300_000, "b.log": b"y\n" * 300_000}), {}, 413, "log_too_large"),
        (OUT_OF_MEMORY, {"Content-Encoding": "br"}, 415, "unsupported_body"),
        (OUT_OF_MEMORY, {"Content-Encoding": "gzip"}, 415, "unsupported_body"),
        (OUT_OF_MEMORY, {"Content-Type": "multipart/mixed; boundary=x"}, 415, "unsupported_body"),
        (PART, {"Content-Type": "multipart/form-data"}, 400, "bad_form"),
        (PART, MULTIPART, 400, "bad_form"),
        (b"no form at all", MULTIPART, 400, "bad_form"),
        (b"--x--\r\n", MULTIPART, 422, "unreadable_log"),
        (PART + b"\r\n--x--\r\n", MULTIPART | {"Content-Encoding": "gzip"}, 415, "unsupported_body"),
        (PART.replace(b'"log"', b'"other"') + b"\r\n--x--\r\n", MULTIPART, 400, "bad_form"),
    ],
)
def test_a_bad_body_is_refused_in_one_line_and_leaves_nothing(
    client: TestClient, tmp_path: Path, route: str, body: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    assert problem(client.post(route, content=body, headers=headers), status)["code"] == code
    assert stored(tmp_path) == []
    assert client.get(URL).json()["items"] == []


def test_a_name_in_a_form_is_no_path(client: TestClient) -> None:
    answer = client.post(URL, content=PART + b"\r\n--x--\r\n", headers=MULTIPART, params=SLOW)
    assert [file["name"] for file in answer.json()["log"]["files"]] == ["a"]


def test_a_body_without_length_is_taken_and_held_to_the_limit(client: TestClient) -> None:
    pieces = [OUT_OF_MEMORY[at : at + 7] for at in range(0, len(OUT_OF_MEMORY), 7)]
    assert client.post(URL, content=iter(pieces), params=SLOW).status_code == 201
    assert problem(client.post(URL, content=(b"x\n" * 50_000 for _ in range(100))), 413)["code"] == "log_too_large"


def test_the_list_is_filtered_and_paged(both: TestClient) -> None:
    oom = send(both, cluster="blue", user="ann")["id"]
    healthy = send(both, HEALTHY, cluster="blue")["id"]
    other = send(both, cluster="green")["id"]

    def ids(**query: str) -> list[str]:
        answer = both.get(URL, params=query)
        assert answer.status_code == 200, answer.text
        TypeAdapter(IncidentsForm).validate_python(answer.json())
        return [item["id"] for item in answer.json()["items"]]

    assert ids() == [other, healthy, oom]
    assert ids(cluster="blue") == [healthy, oom]
    assert ids(cluster="blue", outcome="explained") == [oom]
    assert ids(entry="cuda.oom") == [other, oom]
    assert ids(user="ann") == [oom]
    assert ids(q="显存") == [other, oom]
    assert ids(state="failed") == []
    assert ids(since="2020-01-01", until="2021-01-01") == []
    first = both.get(URL, params={"limit": "2"}).json()
    assert [item["id"] for item in first["items"]] == [other, healthy]
    assert ids(limit="2", cursor=first["next"]) == [oom]


@pytest.mark.parametrize(
    ("query", "status", "name"),
    [
        ("cursor=nonsense", 400, "cursor"), ("state=lost", 422, "state"), ("outcome=fine", 422, "outcome"),
        ("since=soon", 422, "since"), ("until=0001-01-01T00:00:00%2B14:00", 422, "until"), ("limit=0", 422, "limit"),
        ("limit=201", 422, "limit"), ("clutser=blue", 422, "clutser"), ("q=%00", 422, "q"),
    ],
)  # fmt: skip
def test_a_bad_filter_is_refused(client: TestClient, query: str, status: int, name: str) -> None:
    assert name in problem(client.get(f"{URL}?{query}"), status)["message"]


def test_pieces_of_the_log(client: TestClient) -> None:
    log = b"".join(b"line %d\r\n" % i for i in range(1, 251)) + b"HF_TOKEN=hf_abcdefghijklmnopqrstuvwx\n\xff end"
    url = f"{URL}/{send(client, log)['id']}/log"
    first = client.get(url).json()
    TypeAdapter(LinesForm).validate_python(first)
    assert (first["file"], first["total"], first["next"], len(first["lines"])) == ("log", 252, 201, 200)
    rest = client.get(url, params={"from": 250, "lines": 9}).json()
    assert [line["text"] for line in rest["lines"]] == [
        "line 250",
        "HF_TOKEN=[redacted:hugging-face-token]",
        "\ufffd end",
    ]
    assert rest["next"] is None
    assert client.get(url, params={"from": 10**15}).json()["lines"] == []
    problem(client.get(url, params={"file": "other"}), 404)
    for wrong in ("from=0", "lines=0", "lines=2001", "from=x", f"from={10**16}"):
        problem(client.get(f"{url}?{wrong}"), 422)


def test_a_deleted_incident_is_gone_with_its_log(both: TestClient, tmp_path: Path) -> None:
    url = f"{URL}/{send(both)['id']}"
    assert both.delete(url).status_code == 204
    assert stored(tmp_path) == []
    for answer in (both.get(url), both.get(f"{url}/log"), both.delete(url)):
        assert problem(answer, 404)["code"] == "not_found"
    assert both.get("/api/v1/groups").json()["items"] == []


@pytest.mark.parametrize("unknown", ["0", "99", "abc", "%00", "-1", "9" * 40])
def test_an_unknown_incident(client: TestClient, unknown: str) -> None:
    for answer in (
        client.get(f"{URL}/{unknown}"),
        client.get(f"{URL}/{unknown}/log"),
        client.delete(f"{URL}/{unknown}"),
    ):
        problem(answer, 404)


def test_groups(both: TestClient) -> None:
    group = send(both, job_id="1")["group"]
    send(both, job_id="2")
    listed = both.get("/api/v1/groups").json()
    TypeAdapter(GroupsForm).validate_python(listed)
    assert [(item["id"], item["count"], item["entry"]) for item in listed["items"]] == [(group["id"], 2, "cuda.oom")]
    url = f"/api/v1/groups/{group['id']}"
    assert both.patch(url, json={"status": "ignored"}).json()["status"] == "ignored"
    assert both.get(url).json()["status"] == "ignored"
    assert len(both.get(url).json()["fingerprints"]) == 1
    assert both.get("/api/v1/groups", params={"status": "open"}).json()["items"] == []
    assert len(both.get(URL, params={"group": group["id"]}).json()["items"]) == 2
    assert send(both, job_id="3")["group"] == {"id": group["id"], "status": "ignored", "count": 3}


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/api/v1/groups/99", None, 404),
        ("PATCH", "/api/v1/groups/99", {"status": "open"}, 404),
        ("PATCH", "/api/v1/groups/1", {"status": "closed"}, 422),
        ("PATCH", "/api/v1/groups/1", {"status": "open", "count": 0}, 422),
        ("PATCH", "/api/v1/groups/1", None, 422),
        ("GET", "/api/v1/groups?status=x", None, 422),
        ("GET", "/api/v1/groups?cursor=x", None, 400),
        ("GET", "/api/v1/groups?cursor=OTk5OTk5OTk5OTk5OTk5OTk5LjE", None, 400),
        ("PUT", "/api/v1/groups", None, 405),
        ("GET", "/api/v1/nothing", None, 404),
        ("GET", "/api/v1/knowledge/no.entry", None, 404),
        ("GET", "/api/v1/knowledge?kind=x", None, 422),
    ],
)
def test_other_mistakes(client: TestClient, method: str, path: str, body: object, status: int) -> None:
    problem(client.request(method, path, json=body) if body else client.request(method, path), status)


def test_triage_keeps_nothing(client: TestClient, tmp_path: Path) -> None:
    answer = client.post("/api/v1/triage", content=OUT_OF_MEMORY)
    assert answer.status_code == 200
    assert answer.json()["root_cause"]["entry"] == "cuda.oom"
    chinese = client.post("/api/v1/triage?lang=zh", content=OUT_OF_MEMORY).json()
    assert "显存" in json.dumps(chinese["root_cause"], ensure_ascii=False)
    assert stored(tmp_path) == []
    assert client.get(URL).json()["items"] == []
    problem(client.post("/api/v1/triage?lang=fr", content=OUT_OF_MEMORY), 422)


@pytest.mark.parametrize("header", [{"sec-fetch-site": "cross-site"}, {"origin": "https://elsewhere.example"}])
def test_another_sites_page_cannot_change_anything(client: TestClient, header: dict[str, str]) -> None:
    incident = send(client)
    for method, path in (("POST", URL), ("DELETE", f"{URL}/{incident['id']}"), ("PATCH", "/api/v1/groups/1")):
        found = problem(client.request(method, path, headers=header, content=b"x"), 403)
        assert found["code"] == "cross_site"
    assert client.get(f"{URL}/{incident['id']}", headers=header).status_code == 200
