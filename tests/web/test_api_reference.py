"""The reference of the API: every route is there, its command is one that the server takes, and GETs can be tried."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from torchtriage.settings import Settings
from torchtriage.web.app import create_app
from torchtriage.web.pages.api_descriptions import descriptions
from torchtriage.web.pages.api_reference import Operation, operations

HTML = {"accept": "text/html"}
LOG = (
    b"step 1 loss 2.0\nTraceback (most recent call last):\nRuntimeError: CUDA out of memory. Tried to allocate 2 GiB\n"
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    settings = Settings(data_dir=tmp_path_factory.mktemp("reference"), workers=0)
    with TestClient(create_app(settings), follow_redirects=False) as asked:
        yield asked


def described(client: TestClient, guarded: bool = False) -> dict[str, Operation]:
    found = operations(client.app.openapi(), "http://service", guarded)  # type: ignore[attr-defined]
    return {f"{one.method} {one.path}": one for group in found.values() for one in group}


def test_the_page_has_every_route(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    page = client.get("/docs", headers=HTML)
    assert page.status_code == 200
    text = page.text.replace("<wbr>", "")
    for path, methods in paths.items():
        for method in methods:
            assert re.search(rf"<b [^>]*>{method.upper()}</b> {re.escape(path)}<", text)
    tags = re.findall(r'<a href="#[^"]+">(.*?)</a>', text)
    assert tags[:2] == ["Incidents", "Triage"]
    assert tags[2:] == sorted(tags[2:], key=str.casefold)
    assert "Authorization: Bearer $TORCHTRIAGE_TOKEN" in text.partition('class="tabs"')[0]
    assert '<a href="/docs">API</a>' in client.get("/", headers=HTML).text


def test_every_route_says_what_it_does(client: TestClient) -> None:
    assert [name for name, one in described(client).items() if not one.description] == []


def test_every_sentence_and_group_is_in_both_languages(client: TestClient) -> None:
    english = described(client).values()
    parameters = [parameter for one in english for parameter in one.parameters]
    told = {one.description for one in english} | {parameter.description for parameter in parameters}
    told |= {text for one in english for _, text in (*one.results, *one.errors)}
    own = {text.in_("en") for text in descriptions().purposes.values()}
    standard = {"Request Entity Too Large", "Unprocessable Entity", *(status.phrase for status in HTTPStatus)}
    assert told - own - standard - descriptions().chinese.keys() == set()
    assert descriptions().chinese.keys() - told == set()
    assert {one.name for one in parameters if one.description in own} == descriptions().purposes.keys()
    assert [f"{one.where} {one.name}" for one in parameters if not one.description] == []


def test_the_page_is_in_chinese(client: TestClient) -> None:
    page = client.get("/docs?lang=zh", headers=HTML).text
    assert "提交一次失败的运行" in page
    assert "任务的退出码" in page
    assert "integer，1 到 200" in page
    assert ">条目草稿</h2>" in page
    assert "Submit a failed run" not in page


def test_a_description_is_a_summary_and_details(client: TestClient) -> None:
    submit = described(client)["POST /api/v1/incidents"]
    assert submit.summary == "Submit a failed run"
    assert submit.details.startswith("The answer is sent")
    assert [code for code, _ in submit.results] == ["201", "200", "202"]
    assert "404" in [code for code, _ in described(client)["GET /api/v1/groups/{group}"].errors]


def test_types_are_described_in_words(client: TestClient) -> None:
    listed = {one.name: one for one in described(client)["GET /api/v1/incidents"].parameters}
    assert (listed["limit"].kind, listed["limit"].default) == ("integer, 1 to 200", "50")
    assert listed["outcome"].kind == "explained, unexplained, healthy or inconclusive"
    merged = described(client)["POST /api/v1/groups/{group}/merge"].parameters
    assert [(one.name, one.where, one.kind, one.required) for one in merged] == [
        ("group", "path", "string", True),
        ("groups", "body", "list of string", True),
    ]


def test_commands_are_ones_that_the_server_takes(client: TestClient) -> None:
    known = described(client)
    assert known["POST /api/v1/triage"].command == "curl --data-binary @run.log http://service/api/v1/triage"
    assert known["DELETE /api/v1/incidents/{incident}"].command.startswith("curl -X DELETE ")
    body = shlex.split(known["POST /api/v1/incidents/{incident}/feedback"].command)
    assert body[body.index("-d") + 1] == '{"verdict": …}'
    assert "Authorization" not in known["GET /api/v1/groups"].command
    guarded = described(client, guarded=True)
    assert '-H "Authorization: Bearer $TORCHTRIAGE_TOKEN"' in guarded["GET /api/v1/groups"].command
    assert "Authorization" not in guarded["GET /healthz"].command


def test_a_get_is_tried_with_what_was_filled_in(client: TestClient) -> None:
    taken = client.post("/api/v1/incidents?wait=60", content=LOG).json()["id"]
    read = described(client)["GET /api/v1/incidents/{incident}/log"].id
    led = client.get(f"/docs/try/{read}", params={"incident": taken, "lines": "1", "from": "3", "file": ""})
    assert led.status_code == 303
    assert led.headers["location"] == f"/api/v1/incidents/{taken}/log?lines=1&from=3"
    assert "out of memory" in client.get(led.headers["location"]).text


def test_trying_leads_nowhere_else_and_changes_nothing(client: TestClient) -> None:
    known = described(client)
    read = known["GET /api/v1/incidents/{incident}"].id
    led = client.get(f"/docs/try/{read}", params={"incident": "//elsewhere.example/x?y"})
    assert led.headers["location"] == "/api/v1/incidents/%2F%2Felsewhere.example%2Fx%3Fy"
    for name in (known["DELETE /api/v1/incidents/{incident}"].id, "none"):
        assert client.get(f"/docs/try/{name}").status_code == 404


def test_with_tokens_on_the_page_says_so(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, workers=0, auth="tokens")
    with TestClient(create_app(settings)) as asked:
        assert asked.get("/docs", headers=HTML, follow_redirects=False).status_code == 303
