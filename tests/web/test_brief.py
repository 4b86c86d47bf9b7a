"""The brief of a stored incident, as the API, a page and an agent get it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.logs import steps, text, traceback
from tests.web.broken_engine import refuse_logs
from tests.web.test_mcp import ask
from torchtriage.answer.brief.token_count import token_count
from torchtriage.cli.brief import brief_of
from torchtriage.cli.start_engine import start_engine

LOG = text(
    steps(range(4), count=3000),
    traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", prefix="[rank1]: "),
    [f"[rank{rank}]: RuntimeError: Connection closed by peer [10.0.0.7]:2551" for rank in (0, 2, 3)],
)


def kept(client: TestClient, log: bytes = LOG) -> str:
    return str(client.post("/api/v1/incidents?wait=30", content=log).json()["id"])


def test_the_api_gives_markdown_of_the_size_asked_for(client: TestClient) -> None:
    address = f"/api/v1/incidents/{kept(client)}/brief"
    whole = client.get(address)
    assert whole.headers["content-type"] == "text/markdown; charset=utf-8"
    assert "rank 1 · failed first" in whole.text
    assert "> 12004 [rank1]: torch.OutOfMemoryError" in whole.text
    assert "step 2999" in whole.text
    assert token_count(whole.text) <= 2000
    short = client.get(f"{address}?tokens=400&lang=zh")
    assert "## 诊断" in short.text
    assert token_count(short.text) <= 400
    assert client.get(f"{address}?tokens=10").status_code == 422


def test_a_stored_log_gives_the_same_brief_as_a_file(client: TestClient, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(LOG)
    _, made = brief_of(start_engine(), str(tmp_path / "log"), "en")
    stored = client.get(f"/api/v1/incidents/{kept(client)}/brief").text
    assert stored.partition("\n")[2] == made.text.partition("\n")[2]


def test_an_unknown_incident_or_one_without_a_verdict_is_refused(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = client.get("/api/v1/incidents/77/brief")
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "not_found")
    refuse_logs(client, monkeypatch)
    refused = client.get(f"/api/v1/incidents/{kept(client)}/brief")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "not_triaged")


def test_the_openapi_document_describes_its_form(client: TestClient) -> None:
    told = client.get("/openapi.json").json()["paths"]["/api/v1/incidents/{incident}/brief"]["get"]["responses"]
    assert list(told["200"]["content"]) == ["text/markdown"]
    assert {"404", "409"} <= told.keys()


def test_an_agent_reads_it(client: TestClient) -> None:
    (piece,) = ask(client, "read_brief", incident=kept(client))["content"]
    assert piece["text"].startswith("# Brief: ")


def test_the_page_offers_it(client: TestClient) -> None:
    incident = kept(client)
    page = client.get(f"/incidents/{incident}?lang=zh").text
    assert f'data-from="/api/v1/incidents/{incident}/brief?lang=zh"' in page
