"""What a language model says, as the page shows it beside the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from fastapi.testclient import TestClient

from tests.language_model import Model, claims, model
from torchtriage.services import outbox
from torchtriage.services.service import Service
from torchtriage.settings import Settings
from torchtriage.web.app import create_app

UNKNOWN = (
    'Traceback (most recent call last):\n  File "/w/train.py", line 3, in <module>\n    run()\nDriftError: layer 7\n'
)


@pytest.fixture
def fake() -> Iterator[Model]:
    with model() as made:
        yield made


@pytest.fixture
def asking(tmp_path: Path, fake: Model) -> Iterator[TestClient]:
    settings = Settings(data_dir=tmp_path, workers=0, llm_url=fake.url, llm_model="m-1")
    with TestClient(create_app(settings)) as client:
        yield client


def wait_for(client: TestClient, address: str, text: str) -> str:
    service = cast(Service, client.app.state.service)  # type: ignore[attr-defined]
    for _ in range(100):
        outbox.send_one(service)
        page = client.get(address).text
        if text in page:
            return page
    raise AssertionError(page)


def test_claims_stand_beside_the_verdict_and_those_that_do_not_stand_are_struck_out(
    asking: TestClient, fake: Model
) -> None:
    fake.says = lambda _: claims(
        {"says": "<b>The layer</b> drifted.", "line": 4, "quote": "DriftError: layer 7"},
        {"says": "The disk is full.", "line": 2, "quote": "No space left"},
        {"says": "Buy more GPUs.", "line": None, "quote": ""},
    )
    incident = asking.post("/api/v1/incidents?wait=30", content=UNKNOWN).json()["id"]
    address = f"/incidents/{incident}?lang=en"
    assert "Ask the language model" in asking.get(address).text
    assert asking.post(f"/incidents/{incident}/explain", follow_redirects=False).status_code == 303
    page = wait_for(asking, address, "m-1 says")
    assert f'&lt;b&gt;The layer&lt;/b&gt; drifted. <a class="n" href="/incidents/{incident}/log?line=4#L4"' in page
    assert "<s>The disk is full.</s>" in page
    assert "line 2 does not say this" in page
    assert "<s>Buy more GPUs.</s>" in page
    assert "it names no line" in page
    assert "Ask again" in page
    assert "m-1 的说法" in asking.get(f"/incidents/{incident}?lang=zh").text


def test_a_question_that_failed_says_so(asking: TestClient, fake: Model) -> None:
    fake.says = lambda _: "no JSON <script>"
    incident = asking.post("/api/v1/incidents?wait=30", content=UNKNOWN).json()["id"]
    asking.post(f"/incidents/{incident}/explain")
    assert "not the JSON that was asked for" in wait_for(asking, f"/incidents/{incident}", "last question failed")


def test_without_a_model_nobody_is_offered_one(client: TestClient) -> None:
    incident = client.post("/api/v1/incidents?wait=30", content=UNKNOWN).json()["id"]
    assert "Ask the language model" not in client.get(f"/incidents/{incident}?lang=en").text
    assert client.post(f"/incidents/{incident}/explain").status_code == 400
    assert "generated" not in client.get("/api/v1/groups").json()["items"][0]
