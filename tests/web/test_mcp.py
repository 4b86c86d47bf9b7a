from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest
from fastapi.testclient import TestClient
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.mcpserver.tools import Tool

from tests.web.logs import OOM
from torchtriage.domain.access import Scope
from torchtriage.services import tokens
from torchtriage.services.service import Service
from torchtriage.settings import Settings
from torchtriage.web.app import create_app

QUESTION = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


def ask(client: TestClient, tool: str, headers: dict[str, str] | None = None, **arguments: Any) -> dict[str, Any]:
    question = QUESTION | {"params": {"name": tool, "arguments": arguments}}
    answer = client.post("/mcp", json=question, headers=HEADERS | (headers or {}))
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()["result"]
    return result


def told(client: TestClient, tool: str, **arguments: Any) -> Any:
    result = ask(client, tool, **arguments)
    assert not result.get("isError"), result
    pieces = [json.loads(piece["text"]) for piece in result["content"]]
    return pieces[0] if len(pieces) == 1 else pieces


def keep(client: TestClient, job: str) -> str:
    answer = client.post(f"/api/v1/incidents?job_id={job}&wait=30", content=OOM + job)
    assert answer.status_code == 201
    return str(answer.json()["id"])


def test_a_log_is_triaged_and_nothing_is_kept(client: TestClient) -> None:
    verdict = told(client, "triage_log", log=OOM)
    assert verdict["root_cause"]["entry"] == "cuda.oom"
    assert client.get("/api/v1/incidents").json()["items"] == []


def test_answers_come_in_the_language_asked_for(client: TestClient) -> None:
    assert "显存" in told(client, "read_entry", entry="cuda.oom", lang="zh")["title"]
    assert told(client, "search_knowledge", query="cuda out of memroy", limit=3)[0]["entry"] == "cuda.oom"


def test_incidents_groups_and_logs_are_read(client: TestClient) -> None:
    first, second = keep(client, "1"), keep(client, "2")
    client.post(f"/api/v1/incidents/{first}/feedback", json={"verdict": "right", "note": "halving the batch helped"})
    listed = told(client, "list_incidents", entry="cuda.oom")
    assert [found["id"] for found in listed] == [second, first]
    assert told(client, "read_incident", incident=first)["verdict"]["root_cause"]["entry"] == "cuda.oom"
    assert told(client, "read_log", incident=first, lines=1)["lines"][0]["line"] == 1
    like = told(client, "similar_incidents", incident=second)
    assert (like["id"], like["feedback"][0]["note"]) == (first, "halving the batch helped")
    group = told(client, "list_groups")
    assert (group["count"], told(client, "read_group", group=group["id"])["entry"]) == (2, "cuda.oom")


def test_an_unknown_incident_is_reported_to_the_agent(client: TestClient) -> None:
    result = ask(client, "read_incident", incident="77")
    assert result["isError"]
    assert "no such incident" in result["content"][0]["text"]


def test_over_http_no_file_of_the_server_is_read(client: TestClient) -> None:
    listed = client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=HEADERS).json()
    names = {tool["name"] for tool in listed["result"]["tools"]}
    assert "triage_log" in names
    assert "triage_path" not in names


def test_a_token_is_asked_for_and_its_scope_counts(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, workers=0, auth="tokens")
    with TestClient(create_app(settings)) as client:
        assert client.post("/mcp", json=QUESTION, headers=HEADERS).status_code == 401
        service: Service = client.app.state.service  # type: ignore[attr-defined]
        secret, _ = tokens.create(service.database, "agent", {Scope.READ}, None, "test")
        shown = {"Authorization": f"Bearer {secret}"}
        assert not ask(client, "search_knowledge", shown, query="oom").get("isError")
        assert (
            client.get("/mcp", headers=shown | {"accept": "text/event-stream"}).status_code == 405
        )  # no endless stream
        refused = ask(client, "triage_log", shown, log="Killed")
        assert refused["isError"]
        assert "scope submit" in refused["content"][0]["text"]


def test_a_page_of_another_site_is_refused(client: TestClient) -> None:
    answer = client.post("/mcp", json=QUESTION, headers=HEADERS | {"Sec-Fetch-Site": "cross-site"})
    assert answer.json()["error"]["code"] == "cross_site"


@pytest.mark.parametrize("packed", ["file", pytest.param("folder", marks=pytest.mark.slow)])
def test_over_standard_input_a_person_s_own_files_are_read(tmp_path: Path, packed: str) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "rank0.log").write_text(OOM)
    path = logs if packed == "folder" else logs / "rank0.log"
    environment = os.environ | {"TRIAGE_DATA_DIR": str(tmp_path / "data"), "TRIAGE_WORKERS": "0"}
    command = StdioServerParameters(command=sys.executable, args=["-m", "torchtriage.cli.main", "mcp"], env=environment)

    async def talk() -> str:
        async with stdio_client(command) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            result = await session.call_tool("triage_path", {"path": str(path)})
            return str(result.content[0].text)  # type: ignore[union-attr]

    # In a thread of its own: one that drove a browser has a loop of its own running.
    with ThreadPoolExecutor(1) as thread:
        verdict = json.loads(thread.submit(anyio.run, talk).result())
    assert verdict["root_cause"]["entry"] == "cuda.oom"


def test_tools_are_described_once_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as open_apps:
        applications = [create_app(Settings(data_dir=tmp_path / name, workers=0)) for name in "ab"]
        first = open_apps.enter_context(TestClient(applications[0]))
        monkeypatch.setattr(Tool, "from_function", None)
        second = open_apps.enter_context(TestClient(applications[1]))
        keep(first, "1")
        assert [found["job"]["job_id"] for found in [told(first, "list_incidents")]] == ["1"]
        assert ask(second, "list_incidents")["content"] == []
