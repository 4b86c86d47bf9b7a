"""What a page shows to whom with tokens on: nobody is shown a form, a link or a command that would be refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.web.test_states import BROWSER, service_of, token
from torchtriage.domain.access import Scope
from torchtriage.settings import Settings
from torchtriage.web.app import create_app

COMMAND = "curl -H &#34;Authorization: Bearer $TORCHTRIAGE_TOKEN&#34; --data-binary @run.log"


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[TestClient]:
    settings = Settings(data_dir=tmp_path, workers=0, auth="tokens")
    with TestClient(create_app(settings), headers=BROWSER) as asked:
        yield asked


def test_a_reader_sees_a_note_in_place_of_the_form(guarded: TestClient) -> None:
    service = service_of(guarded)
    page = guarded.get("/", headers=token(service, Scope.READ)).text
    assert 'id="paste"' not in page
    assert "it needs the scope submit" in page
    assert "curl" not in page
    page = guarded.get("/", headers=token(service, Scope.READ, Scope.SUBMIT)).text
    assert 'id="paste"' in page
    assert COMMAND in page


def test_without_tokens_the_command_has_none(client: TestClient) -> None:
    assert "curl --data-binary @run.log" in client.get("/").text


def test_the_login_leads_nowhere_that_asks_for_one(guarded: TestClient) -> None:
    page = guarded.get("/login").text
    assert 'href="/incidents"' not in page
    assert 'role="search"' not in page
    assert 'href="/alerts"' not in page
    assert "--scope read" in page
    assert "需要令牌才能查看" in guarded.get("/login?lang=zh").text


def test_an_unknown_entry_is_looked_for_in_the_knowledge_base(client: TestClient) -> None:
    page = client.get("/knowledge/cuda.omm", headers=BROWSER).text
    assert '<form class="lost-find" action="/knowledge"' in page
    assert 'value="cuda.omm"' in page
    page = client.get("/nowhere/to-be-found/", headers=BROWSER).text
    assert '<form class="lost-find" action="/incidents"' in page
    assert 'value="to-be-found"' in page
