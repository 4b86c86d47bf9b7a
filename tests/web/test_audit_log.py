"""The audit log: each change leaves one row that says who, what, when and what was otherwise; nothing else does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.services.logs import OUT_OF_MEMORY
from torchtriage.cli.main import main
from torchtriage.domain.access import Scope
from torchtriage.services import tokens
from torchtriage.services.retention import forget_old
from torchtriage.services.service import Service
from torchtriage.settings import Settings
from torchtriage.storage.database import Database
from torchtriage.web.app import create_app

SECRET = "hf_" + "a" * 34


@pytest.fixture
def guarded(tmp_path: Path, database_url: str) -> Iterator[TestClient]:
    """A service that wants tokens, asked by somebody who may everything, on SQLite and on Postgres in turn."""
    settings = Settings(
        data_dir=tmp_path, database_url=database_url, workers=0, auth="tokens", host="0.0.0.0", retention_days=1
    )
    with TestClient(create_app(settings), follow_redirects=False) as asked:
        secret, _ = tokens.create(service_of(asked).database, "ann", [Scope.ADMIN], None, "a test")
        asked.headers["authorization"] = f"Bearer {secret}"
        yield asked


def service_of(client: TestClient) -> Service:
    service: Service = client.app.state.service  # type: ignore[attr-defined]
    return service


class Trail:
    """What was written since it was last asked."""

    def __init__(self, client: TestClient) -> None:
        self._client = client
        self.rows()

    def rows(self) -> list[tuple[str, str, str, dict[str, Any]]]:
        items = self._client.get("/api/v1/changes?limit=200").json()["items"]
        known, self._known = getattr(self, "_known", 0), int(items[0]["id"])
        new = [item for item in items if int(item["id"]) > known]
        return [(item["by"], item["action"], item["subject"], item["detail"]) for item in new]


def sent(client: TestClient, **job: str) -> dict[str, Any]:
    incident: dict[str, Any] = client.post(
        "/api/v1/incidents", params={"wait": 60, **job}, content=OUT_OF_MEMORY
    ).json()
    return incident


def test_changes_of_a_group_are_recorded(guarded: TestClient) -> None:
    group = sent(guarded, job_id="1")["group"]["id"]
    trail, address, subject = Trail(guarded), f"/api/v1/groups/{group}", f"group {group}"
    note = f"the token was {SECRET}"
    assert (
        guarded.patch(address, json={"owner": "bob", "note": note}).json()["note"]
        == "the token was [redacted:hugging-face-token]"
    )
    before, after = (
        {"owner": None, "note": None},
        {"owner": "bob", "note": "the token was [redacted:hugging-face-token]"},
    )
    assert trail.rows() == [("ann", "change", subject, {"before": before, "after": after})]
    guarded.patch(address, json={"owner": "bob", "status": "open"})
    guarded.post(
        f"/groups/{group}",
        data={"owner": "bob", "note": "the token was [redacted:hugging-face-token]", "status": "open"},
    )
    assert trail.rows() == []  # as it was before
    guarded.post("/groups/bulk", data={"group": [group], "status": "resolved"})
    resolved = {"before": {"status": "open"}, "after": {"status": "resolved"}}
    assert trail.rows() == [("ann", "change", subject, resolved)]
    sent(guarded, job_id="2")
    opened = {"before": {"status": "resolved"}, "after": {"status": "open"}}
    assert trail.rows() == [("torchtriage", "regress", subject, opened)]
    sent(guarded, job_id="3")
    assert trail.rows() == []


def test_feedback_and_deletion_of_an_incident_are_recorded(guarded: TestClient) -> None:
    incident = sent(guarded, job_id="1", cluster="blue")
    trail, address, subject = Trail(guarded), f"/api/v1/incidents/{incident['id']}", f"incident {incident['id']}"
    said = guarded.post(f"{address}/feedback", json={"verdict": "right", "note": f"password={SECRET}"}).json()
    assert said["feedback"][0]["note"] == "password=[redacted:hugging-face-token]"
    told = {"verdict": "right", "entry": None, "note": "password=[redacted:hugging-face-token]"}
    assert trail.rows() == [("ann", "feedback", subject, {"after": told})]
    guarded.delete(address)
    ((by, action, of, detail),) = trail.rows()
    assert (by, action, of) == ("ann", "forget", subject)
    kept = {name: detail["before"][name] for name in ("job_id", "cluster", "entry", "state", "log_sha256")}
    assert kept == {
        "job_id": "1",
        "cluster": "blue",
        "entry": "cuda.oom",
        "state": "triaged",
        "log_sha256": incident["log"]["sha256"],
    }
    assert guarded.delete(address).status_code == 404
    assert trail.rows() == []


def test_it_survives_retention_which_is_recorded_too(guarded: TestClient) -> None:
    incident = sent(guarded, job_id="1")
    trail = Trail(guarded)
    guarded.patch(f"/api/v1/groups/{incident['group']['id']}", json={"status": "ignored"})
    forget_old(service_of(guarded), datetime.now(UTC) + timedelta(days=1, hours=9))
    told = [(by, action, subject) for by, action, subject, _ in trail.rows()]
    assert told == [
        ("retention", "forget", f"incident {incident['id']}"),
        ("ann", "change", f"group {incident['group']['id']}"),
    ]


def test_tokens_and_sessions(guarded: TestClient) -> None:
    database, trail = service_of(guarded).database, Trail(guarded)
    secret, made = tokens.create(database, "bob", [Scope.READ], timedelta(days=1), "root")
    ((by, action, subject, detail),) = trail.rows()
    assert (by, action, subject) == ("root", "create", f"token {made.id}")
    assert (detail["after"]["name"], detail["after"]["scopes"]) == ("bob", ["read"])
    guarded.post("/login", data={"token": secret})
    ((by, action, _, detail),) = trail.rows()
    assert (by, action, detail["after"]["token"]) == ("bob", "login", made.id)
    guarded.post("/logout")
    assert [row[:2] for row in trail.rows()] == [("bob", "logout")]
    for _ in range(2):
        guarded.post(f"/settings/tokens/{made.id}/revoke")
    assert [row[:3] for row in trail.rows()] == [("ann", "revoke", f"token {made.id}")]
    assert secret not in json.dumps(guarded.get("/api/v1/changes?limit=200").json())


def test_a_refused_request_is_not_recorded(guarded: TestClient) -> None:
    incident = sent(guarded, job_id="1")
    trail = Trail(guarded)
    secret, _ = tokens.create(service_of(guarded).database, "eve", [Scope.READ], None, "a test")
    trail.rows()
    address = f"/api/v1/incidents/{incident['id']}"
    assert guarded.delete(address, headers={"authorization": f"Bearer {secret}"}).status_code == 403
    assert guarded.delete(address, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert guarded.post("/login", data={"token": "tt_guessed"}).status_code == 401
    group = incident["group"]["id"]
    assert guarded.post(f"/api/v1/groups/{group}/merge", json={"groups": [group]}).status_code == 409
    assert trail.rows() == []


def test_a_view_that_takes_anothers_place(guarded: TestClient) -> None:
    trail = Trail(guarded)
    for query in ("cluster=blue", "cluster=red"):
        guarded.post("/incidents/views", data={"name": "mine", "query": query})
    told = [detail for _, _, _, detail in trail.rows()]
    blue, red = ({"name": "mine", "query": f"cluster={colour}"} for colour in ("blue", "red"))
    assert told == [{"before": blue, "after": red}, {"before": None, "after": blue}]


def test_it_is_asked_for_by_subject_and_name_in_pieces(guarded: TestClient) -> None:
    group = sent(guarded, job_id="1")["group"]["id"]
    for owner in ("a", "b", "c"):
        guarded.patch(f"/api/v1/groups/{group}", json={"owner": owner})
    found, cursor = [], None
    while True:
        asked = {"subject": f"group {group}", "by": "ann", "limit": "2"} | ({"cursor": cursor} if cursor else {})
        page = guarded.get("/api/v1/changes", params=asked).json()
        found += [item["detail"]["after"]["owner"] for item in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert found == ["c", "b", "a"]
    assert guarded.get("/api/v1/changes?by=nobody").json() == {"items": [], "next": None}
    assert guarded.get("/api/v1/changes?cursor=x").status_code == 400


def test_the_command_prints_it(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRIAGE_DATABASE_URL", database_url)
    monkeypatch.setenv("TRIAGE_DATA_DIR", str(tmp_path))
    assert main(["token", "create", "bob\x1b[2J", "--scope", "read"]) == 0
    secret = capsys.readouterr().out.strip()
    assert main(["changes"]) == 0
    told = capsys.readouterr().out
    assert "create  token 1" in told
    assert "\x1b" not in told
    with closing(Database(database_url)) as database:
        for at in range(60):
            tokens.create(database, f"name {at}", [Scope.READ], None, "ann")
    assert main(["changes", "--all", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["subject"] for line in lines] == [f"token {at}" for at in range(61, 0, -1)]
    assert main(["changes", "--by", "ann", "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 50
    assert secret not in told


def test_characters_that_a_database_cannot_store_are_removed_from_texts(guarded: TestClient) -> None:
    incident = sent(guarded, job_id="1")
    group = f"/api/v1/groups/{incident['group']['id']}"
    assert guarded.patch(group, json={"note": "a\0b"}).json()["note"] == "ab"
    said = {"verdict": "right", "note": "a\0b"}
    assert guarded.post(f"/api/v1/incidents/{incident['id']}/feedback", json=said).json()["feedback"][0]["note"] == "ab"
    assert guarded.post("/incidents/views", data={"name": "a\0b", "query": "\0user=ann"}).status_code == 303
    assert guarded.get("/hosts/%00").status_code == 404
    _, token = tokens.create(service_of(guarded).database, "a\0b", [Scope.READ], None, "a test")
    assert token.name == "ab"


def test_feedback_is_taken_back_by_who_gave_it(client: TestClient) -> None:
    incident = client.post(
        "/api/v1/incidents?wait=60", content="Traceback (most recent call last):\nValueError: x\n"
    ).json()
    page = f"/incidents/{incident['id']}"
    client.post(f"{page}/feedback", data={"verdict": "wrong", "note": "no"})
    (said,) = client.get(f"/api/v1{page}").json()["feedback"]
    shown = client.get(page).text
    at = re.search(r'name="at" value="([^"]+)"', shown)
    assert at is not None
    assert client.post(f"{page}/feedback/undo", data={"at": "2026-05-01T00:00:00+00:00"}).status_code == 404
    assert client.post(f"{page}/feedback/undo", data={"at": "yesterday"}).status_code == 400
    answer = client.post(f"{page}/feedback/undo", data={"at": at[1]})
    assert "Feedback withdrawn." in answer.text
    assert client.get(f"/api/v1{page}").json()["feedback"] == []
    change = client.get("/api/v1/changes").json()["items"][0]
    assert (change["action"], change["detail"]["before"]["note"]) == ("undo feedback", said["note"])
