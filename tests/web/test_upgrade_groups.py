"""Groups of the release before, on pages and in the API; on both databases (tests/releases)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.releases.unpacking import unpack
from torchtriage.services.service import Service
from torchtriage.settings import Settings
from torchtriage.storage.tables import FingerprintRow, GoneGroupRow, GroupRow
from torchtriage.web.app import create_app

DEADLINE = 120  # seconds


@pytest.fixture
def database_url(empty_database_url: str) -> str:
    """A release's tables and rows are put into it."""
    return empty_database_url


@pytest.fixture
def client(tmp_path: Path, database_url: str) -> Iterator[TestClient]:
    """The service, as it starts after an upgrade."""
    unpack("0.1.0", tmp_path, database_url)
    settings = Settings(data_dir=tmp_path, database_url=database_url, workers=0)
    with TestClient(create_app(settings), raise_server_exceptions=False, follow_redirects=False) as asked:
        yield asked


def service_of(client: TestClient) -> Service:
    service: Service = client.app.state.service  # type: ignore[attr-defined]
    return service


def settled(client: TestClient) -> TestClient:
    deadline = time.monotonic() + DEADLINE
    while not service_of(client).settled.wait(0.1):
        assert time.monotonic() < deadline, "the groups of the release are not known by their fingerprints of today"
    return client


def test_the_start_after_an_upgrade_looks_at_the_groups(client: TestClient) -> None:
    pages = [client.get("/groups").text]
    settled(client)
    pages.append(client.get("/groups").text)
    assert "The knowledge base has changed" not in pages[1]
    group = client.get("/api/v1/groups/1").json()
    assert (group["status"], group["owner"], group["count"], group["came_from"]) == ("ignored", "ann", 20, None)


def test_the_number_of_unchecked_fingerprints_is_shown(client: TestClient) -> None:
    service = service_of(settled(client))
    service.settled.clear()
    with service.database.transaction() as session:
        for known in session.query(FingerprintRow).filter(FingerprintRow.group_number < 3):
            known.knowledge = "older"
    assert "Logs of 2 groups are being triaged again" in client.get("/groups").text
    assert "正在重新诊断 2 个分组的日志" in client.get("/groups", headers={"Accept-Language": "zh"}).text


def test_the_number_of_a_group_that_is_gone_leads_to_the_one_that_is_there(client: TestClient) -> None:
    with service_of(settled(client)).database.transaction() as session:
        session.add(GoneGroupRow(number=999, group_number=2))
    (fingerprint,) = client.get("/api/v1/groups/2").json()["fingerprints"]
    for old in ("999", fingerprint):
        assert client.get(f"/api/v1/groups/{old}").json()["id"] == "2"
        answer = client.get(f"/groups/{old}")
        assert (answer.status_code, answer.headers["location"]) == (302, "/groups/2")
        assert len(client.get("/api/v1/incidents", params={"group": old}).json()["items"]) == 5
        assert client.patch(f"/api/v1/groups/{old}", json={"note": old}).json()["id"] == "2"
    trail = client.get("/api/v1/changes", params={"subject": "group 2"}).json()["items"]
    assert [change["detail"]["after"]["note"] for change in trail[:2]] == [fingerprint, "999"]
    for unknown in ("998", "v1:0000", ":"):
        assert client.get(f"/api/v1/groups/{unknown}").status_code == 404
        assert client.get(f"/groups/{unknown}").status_code == 404


def test_a_fingerprint_is_split_off_and_decisions_of_merged_groups_are_shown(client: TestClient) -> None:
    with service_of(settled(client)).database.transaction() as session:
        session.add(FingerprintRow(fingerprint="v1:alias", group_number=2))
        session.get_one(GroupRow, 3).note = "the decoder's"
    page = client.get("/groups/2").text
    assert '<option value="fingerprint=v1:alias">' in page
    assert "the decoder&#39;s" in page
    url = "/api/v1/groups/2/split"
    wrong = client.post(url, json={"by": "fingerprint", "value": "v1:none"})
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (409, "cannot_regroup")
    own = client.post(url, json={"by": "fingerprint", "value": "v1:alias"}).json()
    assert (own["fingerprints"], own["came_from"], own["count"]) == (["v1:alias"], "2", 0)
    assert 'href="/groups/2"' in client.get(f"/groups/{own['id']}").text
    assert "v1:alias" not in client.get("/groups/2").text
    undone = client.post("/groups/2/merge", data={"other": own["id"]})
    assert undone.status_code == 303
    assert client.get("/api/v1/groups/2").json()["merged"] == ["3", own["id"]]
