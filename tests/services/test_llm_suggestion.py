"""A language model on loopback is asked about what no entry names; on both databases."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.services.logs import OUT_OF_MEMORY, upload
from torchtriage.domain.incident import Incident, Job
from torchtriage.services import outbox
from torchtriage.services.accept import accept
from torchtriage.services.groups import read_group
from torchtriage.services.incidents import read_incident
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.services.triage_incident import triage_incident
from torchtriage.settings import Settings

UNEXPLAINED = b"""\
[2026-05-01 09:00:00] step 41 loss 2.1
Traceback (most recent call last):
  File "/home/ann/train.py", line 42, in <module>
    frobnicate(batch, key="hf_abcdefghijklmnopqrstuvwxyzABCDEFGH")
RuntimeError: the frobnicator of layer 7 is out of tune
"""


class Model(ThreadingHTTPServer):
    """Answers as an OpenAI-compatible server does; `status` and `said` can be set."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None, dict[str, Any]]] = []
        self.status, self.said = 200, {"choices": [{"message": {"content": "The layer's frobnicator drifted."}}]}
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: Model

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, self.headers["Authorization"], body))
        content = json.dumps(self.server.said).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def model() -> Iterator[Model]:
    server = Model()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def service(tmp_path: Path, database_url: str, model: Model) -> Iterator[Service]:
    settings = Settings(
        data_dir=tmp_path, database_url=database_url, workers=0, llm_url=model.url, llm_model="m-1", llm_key="k"
    )
    made = open_service(settings, lambda *_: None, working=False)
    yield made
    close_service(made)


def failed(service: Service, log: bytes, job: str) -> Incident:
    incident_id = accept(service, Job(job_id=job), [upload(log)]).incident_id
    triage_incident(service, incident_id)
    while outbox.send_one(service):
        pass
    return read_incident(service, incident_id)


def generated(service: Service, incident: Incident) -> dict[str, Any] | None:
    assert incident.group is not None
    told: dict[str, Any] | None = read_group(service, incident.group.id).as_dict("")["generated"]
    return told


def test_it_is_asked_once_for_a_group_and_never_changes_the_verdict(service: Service, model: Model) -> None:
    first = failed(service, UNEXPLAINED, "1")
    second = failed(service, UNEXPLAINED.replace(b"step 41", b"step 977"), "2")
    assert len(model.asked) == 1
    said = generated(service, second)
    assert said is not None
    assert (said["text"], said["model"]) == ("The layer's frobnicator drifted.", "m-1")
    assert first.verdict is not None
    assert (first.verdict.outcome, first.entry) == ("unexplained", None)


def test_the_question_holds_the_evidence_and_no_secret(service: Service, model: Model) -> None:
    failed(service, UNEXPLAINED, "1")
    path, key, body = model.asked[0]
    assert (path, key, body["model"]) == ("/v1/chat/completions", "Bearer k", "m-1")
    question = body["messages"][1]["content"]
    assert "the frobnicator of layer 7 is out of tune" in question
    assert "step 41 loss" in question
    assert "hf_abc" not in json.dumps(body)


def test_what_an_entry_names_is_not_asked_about(service: Service, model: Model) -> None:
    assert generated(service, failed(service, OUT_OF_MEMORY, "1")) is None
    assert not model.asked


@pytest.mark.parametrize("broken", ["refuses", "says nothing"])
def test_a_model_that_fails_leaves_nothing_behind(service: Service, model: Model, broken: str) -> None:
    model.status, model.said = (400, {}) if broken == "refuses" else (200, {"choices": []})
    assert generated(service, failed(service, UNEXPLAINED, "1")) is None
    assert outbox.count_outbox(service) == {("model", "failed"): 1}
