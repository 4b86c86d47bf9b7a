"""Ids of requests and the lines about them."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from fastapi.testclient import TestClient

from torchtriage.domain.access import Scope
from torchtriage.errors import StorageUnavailable
from torchtriage.logging_config import configure
from torchtriage.services import tokens as access
from torchtriage.settings import Settings
from torchtriage.web import request_log
from torchtriage.web.app import create_app


class Told(logging.Handler):
    """Keeps each record with what was bound when it was written."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.getMessage(), {**record.__dict__, **structlog.contextvars.get_contextvars()}))

    def access(self) -> list[dict[str, Any]]:
        return [values for message, values in self.lines if message == "request"]


@pytest.fixture
def told() -> Iterator[Told]:
    handler, root = Told(), logging.getLogger("torchtriage")
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield handler
    root.removeHandler(handler)
    root.setLevel(level)


def test_a_sane_id_is_taken_over_and_another_made(client: TestClient) -> None:
    assert client.get("/healthz", headers={"x-request-id": "trace-1/2=3"}).headers["x-request-id"] == "trace-1/2=3"
    for strange in ("", " ", "a b", "x" * 129, "<script>"):
        made = client.get("/healthz", headers={"x-request-id": strange}).headers["x-request-id"]
        assert len(made) == 32
        assert made.isalnum()
    assert len({client.get("/healthz").headers["x-request-id"] for _ in range(3)}) == 3


@pytest.mark.parametrize(
    "address", ["/", "/nothing", "/api/v1/incidents/x", "/static/page.js", "/static/none", "/login"]
)
def test_every_answer_has_an_id_and_a_line(client: TestClient, told: Told, address: str) -> None:
    answer = client.get(f"{address}?q=password", headers={"accept": "text/html"}, follow_redirects=False)
    (line,) = told.access()
    assert line["request_id"] == answer.headers["x-request-id"]
    assert (line["method"], line["path"], line["status"]) == ("GET", address, answer.status_code)
    assert line["ms"] >= 0
    assert "password" not in str({name: line[name] for name in ("path", "caller", "address")})


def test_the_line_names_the_caller(tmp_path: Path, told: Told) -> None:
    with TestClient(create_app(Settings(data_dir=tmp_path, workers=0, auth="tokens"))) as client:
        database = client.app.state.service.database  # type: ignore[attr-defined]
        secret, _ = access.create(database, "ann", [Scope.READ], None, "a test")
        client.get("/api/v1/groups", headers={"authorization": f"Bearer {secret}"})
        client.get("/api/v1/groups", headers={"authorization": "Bearer tt_nobody"})
        client.delete("/api/v1/incidents/1", headers={"authorization": f"Bearer {secret}"})
    asked = [(line["caller"], line["token"], line["status"]) for line in told.access()]
    assert asked == [("ann", "1", 200), (None, None, 401), ("ann", "1", 403)]
    assert not [line for line in told.lines if secret in str(line) or "tt_nobody" in str(line)]


def test_all_lines_of_a_request_have_its_id(client: TestClient, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        logging.getLogger("torchtriage.anywhere").warning("from a thread of the request")
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr("torchtriage.services.groups.list_groups", broken)
    answer = client.get("/api/v1/groups", headers={"x-request-id": "r-7"})
    assert answer.status_code == 500
    assert {values.get("request_id") for _, values in told.lines} == {"r-7"}
    assert [message for message, _ in told.lines] == ["from a thread of the request", "request"]
    assert told.access()[0]["status"] == 500
    assert answer.headers["x-request-id"] == "r-7"
    monkeypatch.setattr("torchtriage.web.pages.groups.list_groups", broken)
    page = client.get("/groups", headers={"x-request-id": "r-8", "accept": "text/html"})
    assert page.status_code == 500
    assert '<code translate="no">r-8</code>' in page.text


def test_a_long_path_is_shortened(client: TestClient, told: Told) -> None:
    client.get("/" + "x" * 5000)
    assert len(told.access()[0]["path"]) == request_log._MAX_PATH_LENGTH


_OF_THE_TEST = (" torchtriage.web.request_log: ", " httpx", " httpcore", " asyncio: ")


def logged(capsys: pytest.CaptureFixture[str], request: Callable[[], Any]) -> list[str]:
    """Makes a request that is refused with 503, and returns what the service wrote to standard error, without the line
    about the request and those of the client."""
    configure("info", "text")
    try:
        assert request().status_code == 503
    finally:
        logging.getLogger().handlers.clear()  # capsys ends before the application does
    return [line for line in capsys.readouterr().err.splitlines() if not any(name in line for name in _OF_THE_TEST)]


def test_a_refusal_while_something_is_away_logs_one_line(
    client: TestClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(tmp_path / "logs")
    (tmp_path / "logs").touch()
    (line,) = logged(capsys, lambda: client.post("/api/v1/incidents", content=b"a log"))
    assert " WARNING torchtriage.web.errors: POST /api/v1/incidents: " in line


def test_a_cause_of_several_lines_is_logged_in_one(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def away(*_: object) -> None:
        raise StorageUnavailable("the database is away") from OSError("no route\n[SQL: SELECT 1]\nsee the manual")

    monkeypatch.setattr("torchtriage.services.groups.read_group", away)
    (line,) = logged(capsys, lambda: client.get("/api/v1/groups/7"))
    assert "WARNING torchtriage.web.errors: GET /api/v1/groups/7: the database is away (no route)" in line
    assert "SQL" not in line
