"""`/alerts`: what was sent where, whether it arrived, and sending it again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.web.test_states import BROWSER, accepted, service_of, token
from torchtriage.domain.access import Scope
from torchtriage.domain.notice import NoticeKind, SendState
from torchtriage.services.outbox import list_outbox
from torchtriage.services.service import open_service
from torchtriage.services.triage_incident import triage_incident
from torchtriage.settings import Settings
from torchtriage.storage import outbox
from torchtriage.storage.outbox import Wanted
from torchtriage.web.app import create_app
from torchtriage.web.pages.translations import catalogue

WHY = "refused it: 404 no such hook"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """A service with a chat that nothing is sent to, and with tokens."""
    settings = Settings(data_dir=tmp_path, workers=0, auth="tokens", feishu_webhook_url="https://example.com/hook")
    service = open_service(settings, triage_incident, working=False)
    with TestClient(create_app(settings, service), headers=BROWSER) as asked:
        yield asked


def put(
    client: TestClient, key: str, state: SendState, problem: str | None = None, again: timedelta = timedelta(0)
) -> None:
    service, now = service_of(client), datetime.now(UTC)
    incident = accepted(service, triaged=False)
    with service.database.transaction() as session:
        outbox.put(session, Wanted(key, "new", "feishu", incident), now - timedelta(minutes=5))
        item = outbox.claim(session, now, 0, no_lane=("new",))
        assert item is not None
        if problem:
            outbox.postpone(session, item, now + again, problem)
        if state is not SendState.READY:
            outbox.end(session, item, state, now, problem)


def test_each_message_says_what_its_incident_is_about(client: TestClient) -> None:
    service = service_of(client)
    incident = accepted(service)
    with service.database.transaction() as session:
        outbox.put(session, Wanted("a", "new", "feishu", incident), datetime.now(UTC))
    page = client.get("/alerts", headers=token(service, Scope.READ)).text
    assert "ran out of memory" in page or "GiB" in page


def test_each_message_says_whether_it_arrived(client: TestClient) -> None:
    put(client, "a", SendState.SENT)
    put(client, "b", SendState.FAILED, WHY)
    reader = token(service_of(client), Scope.READ)
    page = client.get("/alerts", headers=reader).text
    assert "New group" in page
    assert "Delivered" in page
    assert WHY in page
    assert 'href="/incidents/1"' in page
    assert "Send again" not in page  # a reader sends nothing
    failed = client.get("/alerts?state=failed", headers=reader).text
    assert '<span class="sending failed">' in failed
    assert '<span class="sending sent">' not in failed
    assert "未送达" in client.get("/alerts?lang=zh", headers=reader).text


def test_a_message_that_is_tried_again_says_when(client: TestClient) -> None:
    put(client, "a", SendState.READY, "no route to host", again=timedelta(minutes=24, seconds=30))
    reader = token(service_of(client), Scope.READ)
    page = client.get("/alerts", headers=reader).text
    assert re.search(r"tries: 1 · next try <time [^>]*>in 24 min</time>", page)
    assert "data-ago" not in page.partition("next try <time")[2].partition(">")[0]  # it does not count past its time
    chinese = client.get("/alerts?lang=zh", headers=reader).text
    assert re.search(r"已尝试 1 次 · 下次重试在 <time [^>]*>24 分钟后</time>", chinese)


def test_a_message_whose_try_is_near_says_so(client: TestClient) -> None:
    put(client, "a", SendState.READY, "no route to host", again=timedelta(seconds=20))
    assert "next try within a minute" in client.get("/alerts", headers=token(service_of(client), Scope.READ)).text


def test_each_kind_of_message_has_a_name() -> None:
    assert {f"alert_{kind}" for kind in NoticeKind} <= catalogue().keys()


def test_a_failed_message_can_be_sent_again_with_permission(client: TestClient) -> None:
    put(client, "b", SendState.FAILED, WHY)
    service = service_of(client)
    (item,) = list_outbox(service).items
    assert client.post(f"/alerts/{item.id}/again", headers=token(service, Scope.READ)).status_code == 403
    writer = token(service, Scope.READ, Scope.WRITE)
    assert "Send again" in client.get("/alerts", headers=writer).text
    answer = client.post(f"/alerts/{item.id}/again", headers=writer, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/alerts")
    assert list_outbox(service).items[0].state is SendState.READY
    assert client.post(f"/alerts/{item.id}/again", headers=writer).status_code == 404


def test_a_long_list_has_pages_and_an_unknown_state_is_all(client: TestClient) -> None:
    service, now = service_of(client), datetime.now(UTC)
    with service.database.transaction() as session:
        for number in range(60):
            outbox.put(session, Wanted(f"k{number}", "strange kind", "feishu"), now)
    reader = token(service, Scope.READ)
    first = client.get("/alerts?state=nonsense", headers=reader).text
    assert first.count("strange kind") == 50
    assert 'rel="next"' in first


def test_without_a_chat_it_says_how_to_connect_one(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, workers=0)
    with TestClient(create_app(settings, open_service(settings, triage_incident, working=False))) as asked:
        assert "/connect?from=slack" in asked.get("/alerts").text
