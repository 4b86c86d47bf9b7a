"""Pages of what went wrong or can't be done: a triage that failed, a log that is gone, a reader who may only read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.services.logs import kept
from tests.web.logs import OOM
from torchtriage.domain.access import Scope
from torchtriage.domain.incident import Feedback, Job
from torchtriage.reading.unpack import Upload
from torchtriage.services import incidents, tokens
from torchtriage.services.accept import accept
from torchtriage.services.service import Service, open_service
from torchtriage.services.triage_incident import triage_incident
from torchtriage.settings import Settings
from torchtriage.storage import verdicts
from torchtriage.web.app import create_app

BROWSER = {"accept": "text/html", "sec-fetch-site": "same-origin"}


def opened(settings: Settings) -> Iterator[TestClient]:
    """A service whose triage runs when a test says so."""
    service = open_service(settings, triage_incident, working=False)
    with TestClient(create_app(settings, service), headers=BROWSER) as asked:
        yield asked


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    yield from opened(Settings(data_dir=tmp_path, workers=0))


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[TestClient]:
    yield from opened(Settings(data_dir=tmp_path, workers=0, auth="tokens"))


def service_of(client: TestClient) -> Service:
    found = client.app.state.service  # type: ignore[attr-defined]
    assert isinstance(found, Service)
    return found


def accepted(service: Service, triaged: bool = True) -> str:
    incident = accept(service, Job(), [Upload("run.log", iter([OOM.encode()]))]).incident_id
    if triaged:
        triage_incident(service, incident)
    return incident


def token(service: Service, *scopes: Scope) -> dict[str, str]:
    secret, _ = tokens.create(service.database, "ann", scopes, None, "a test")
    return {"authorization": f"Bearer {secret}"}


def test_a_triage_that_failed_says_why_and_is_asked_for_again(client: TestClient) -> None:
    service = service_of(client)
    incident = accepted(service, triaged=False)
    with service.database.transaction() as session:
        verdicts.save_failure(
            session, incident, "the triage took longer than 900 seconds and was ended", datetime.now(UTC)
        )
    page = client.get(f"/incidents/{incident}").text
    assert "the triage took longer than 900 seconds" in page
    assert "Re-run triage" in page
    assert "CUDA out of memory" in page  # the log itself
    asked = client.post("/incidents/bulk", data={"incident": incident, "action": "retriage"}, follow_redirects=False)
    assert asked.headers["location"] == "/retriage"


def test_a_damaged_log_is_reported_with_advice(client: TestClient) -> None:
    service = service_of(client)
    incident = accepted(service, triaged=False)
    (place,) = kept(service)
    place.write_bytes(b"")
    triage_incident(service, incident)
    page = client.get(f"/incidents/{incident}").text
    assert "the stored log is damaged: " in page
    assert "Send the same log again to triage it" in page
    assert "保存的日志已损坏：" in client.get(f"/incidents/{incident}?lang=zh").text
    answer = client.get(f"/api/v1/incidents/{incident}/log")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "damaged_log")


def test_a_log_that_is_gone_leaves_its_verdict_and_nothing_that_would_read_it(client: TestClient) -> None:
    service = service_of(client)
    incident = accepted(service)
    service.blobs.remove(incidents.read_incident(service, incident).log.files[0].sha256)
    page = client.get(f"/incidents/{incident}").text
    assert "CUDA out of memory" in page
    assert "the log no longer exists" in page
    assert "Open the whole log" not in page
    log = client.get(f"/incidents/{incident}/log")
    assert log.status_code == 200
    assert "the log no longer exists" in log.text
    assert "log.js" not in log.text
    assert client.get(f"/incidents/{incident}/log.txt").status_code == 404


def test_a_stored_file_is_sent_whole(client: TestClient) -> None:
    incident = accepted(service_of(client))
    assert client.get(f"/incidents/{incident}/log.txt").text == OOM


def test_the_page_says_who_is_logged_in(guarded: TestClient) -> None:
    page = guarded.get("/incidents", headers=token(service_of(guarded), Scope.READ)).text
    assert 'title="Logged in as ann · read"' in page
    assert "who-am-i" not in guarded.get("/login").text


def test_a_reader_gets_no_form_and_sees_the_feedback_of_others(guarded: TestClient) -> None:
    service = service_of(guarded)
    incident = accepted(service)
    reader, writer = token(service, Scope.READ), token(service, Scope.READ, Scope.WRITE)
    page = guarded.get(f"/incidents/{incident}", headers=reader).text
    assert "Is this verdict right?" not in page
    assert "Is this verdict right?" in guarded.get(f"/incidents/{incident}", headers=writer).text
    incidents.give_feedback(
        service, incident, Feedback("right", "bob", datetime.now(UTC), note="halving the batch helped")
    )
    assert "halving the batch helped" in guarded.get(f"/incidents/{incident}", headers=reader).text


def test_many_attempts_of_one_cause_take_one_row(client: TestClient) -> None:
    service = service_of(client)
    failed = "E0501 09:10:00.200000 41 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1) local_rank: 3 (pid: 9) of binary: /usr/bin/python3\n"
    log = "".join(
        "".join(f"[rank {rank}] step {attempt * 100 + step} loss 0.5\n" for step in range(3) for rank in range(4))
        + OOM
        + failed
        for attempt in range(60)
    )
    incident = accept(service, Job(), [Upload("run.log", iter([log.encode()]))]).incident_id
    triage_incident(service, incident)
    page = client.get(f"/incidents/{incident}").text
    assert re.search(r"attempts \d–5\d", page)
    assert page.count("attempt 1<") == 0
