"""What keeps other sites, forged names and hostile logs away."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from torchtriage.domain.access import Scope
from torchtriage.services import tokens
from torchtriage.settings import Settings
from torchtriage.web.app import create_app
from torchtriage.web.security import HEADERS

PEOPLE = {"accept": "text/html"}
EVIL = "evil.example"

# One line each of what people put into logs to do something to those who read them.
HOSTILE = (
    "</pre><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "\"' onmouseover='alert(1)' x=\"",
    "&lt;script&gt;alert(1)&lt;/script&gt; &#60;b&#62;",
    "<!-- --><![CDATA[ ]]><style>body{display:none}</style>",
    "javascript:alert(1) data:text/html,<script>alert(1)</script>",
    "{{ 7*7 }} {% raw %} ${7*7} #{7*7}",
    "\x1b]8;;http://evil.example\x07click\x1b]8;;\x07 \x1b[2J\x1b[31mred\x1b[0m \x9b31m",
    "\u202egnp.exe\u202c \u2066hidden\u2069 \u200bzero\u200b \ufeff \U000e0041tag",
    "back\x08\x08\x08space bell\x07 null\x00 del\x7f vertical\x0b form\x0c",
    "\u2028line\u2029paragraph \x85next",
    "=cmd|' /C calc'!A0",
)


HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)


class Seen(HTMLParser):
    """What a browser would make of a page: its scripts, and all that is active and not ours."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str | None] = []
        self.active: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag == "script":
            self.scripts.append(dict(attributes).get("src"))
        if tag in ("style", "iframe", "object", "embed", "base", "frame"):
            self.active.append(tag)
        for name, value in attributes:
            leads = name in ("href", "src", "action", "formaction", "srcset", "xlink:href", "data")
            if name.startswith("on") or name == "style" or (leads and not re.match(r"[/?#]|https://", value or "/")):
                self.active.append(f"{tag} {name}={value}")


def hostile() -> str:
    frames = "".join(
        f'  File "/work/{line[:60]}.py", line {number}, in <{line[:20]}>\n    x\n'
        for number, line in enumerate(HOSTILE)
    )
    return "\n".join(HOSTILE) + f"\nTraceback (most recent call last):\n{frames}evil.Error: {' '.join(HOSTILE)}\n"


def test_a_hostile_log_does_nothing_on_any_page_that_shows_it(client: TestClient) -> None:
    job = {"job_name": HOSTILE[1], "user": HOSTILE[0], "cluster": HOSTILE[3]}
    answer = client.post("/api/v1/incidents", content=hostile().encode(), params=job)
    incident = answer.json()
    assert answer.status_code == 201, answer.text
    group = incident["group"]["id"]
    pages = [
        f"/incidents/{incident['id']}",
        "/incidents",
        "/",
        f"/groups/{group}",
        "/groups",
        f"/incidents?q={HOSTILE[1]}",
        f"/incidents/{incident['id']}?lang=zh",
        f"/incidents/{incident['id']}?file={HOSTILE[0]}",
        f"/incidents/{incident['id']}/log",
        f"/incidents/{incident['id']}/why?entry=cuda.oom",
        f"/groups/{group}?lang=en",
        "/unexplained",
        "/hosts",
        "/dashboard",
    ]
    for address in pages:
        page = client.get(address, headers=PEOPLE)
        assert page.status_code == 200, address
        text = page.text
        seen = Seen()
        seen.feed(page.text)
        assert seen.active == [], address
        assert seen.scripts, address
        assert all(script and script.startswith("/static/") for script in seen.scripts), address
        assert not HIDDEN.search(text), address
    shown = client.get(pages[0], headers=PEOPLE).text
    assert "{{ 7*7 }}" in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "&amp;lt;script&amp;gt;" in shown
    told = client.get(f"/api/v1/incidents/{incident['id']}")
    assert told.headers["content-type"] == "application/json"
    json.loads(told.content)


def test_a_log_is_never_served_as_a_page(client: TestClient) -> None:
    incident = client.post("/api/v1/incidents", content=b"<html><script>alert(1)</script>\nRuntimeError: x\n").json()
    for accept in ("text/html", "*/*"):
        answer = client.get(f"/api/v1/incidents/{incident['id']}/log", headers={"accept": accept})
        assert not answer.headers["content-type"].startswith("text/html")
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("method", "address", "status"),
    [
        ("GET", "/", 200), ("GET", "/nothing", 404), ("GET", "/static/page.js", 200), ("GET", "/static/none.js", 404),
        ("PUT", "/", 405), ("POST", "/api/v1/triage", 422), ("GET", "/api/v1/incidents?limit=x", 422),
        ("GET", "/api/v1/incidents/999999", 404), ("GET", "/unexplained", 200), ("GET", "/openapi.json", 200),
        ("GET", "/healthz", 200), ("GET", "/groups", 500), ("GET", "/api/v1/groups", 500), ("GET", "/incidents/", 404),
    ],
)  # fmt: skip
def test_every_answer_carries_every_header(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, method: str, address: str, status: int
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a secret of ours")

    for place in ("torchtriage.services.groups.list_groups", "torchtriage.web.pages.groups.list_groups"):
        monkeypatch.setattr(place, broken)
    for headers in ({}, PEOPLE):
        answer = client.request(method, address, headers=headers, follow_redirects=False)
        assert answer.status_code == status, address
        for name, value in HEADERS.items():
            assert answer.headers[name] == value, (address, name)
        assert "a secret of ours" not in answer.text
        assert "test_security" not in answer.text  # no traceback


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[TestClient]:
    settings = Settings(data_dir=tmp_path, workers=0, auth="tokens", public_url="https://triage.example.org")
    with TestClient(create_app(settings), base_url="https://triage.example.org", follow_redirects=False) as client:
        yield client


def secret(client: TestClient, *scopes: Scope) -> str:
    database = client.app.state.service.database  # type: ignore[attr-defined]
    return tokens.create(database, "ann", scopes, None, "a test")[0]


def test_addresses_come_from_the_settings_and_not_from_the_host_of_a_request(guarded: TestClient) -> None:
    everything = {"authorization": f"Bearer {secret(guarded, Scope.ADMIN)}"}
    forged = everything | {
        "host": EVIL,
        "x-forwarded-host": EVIL,
        "forwarded": f"host={EVIL}",
        "x-forwarded-proto": "http",
    }
    made = guarded.post("/api/v1/incidents", content=b"RuntimeError: CUDA error: out of memory\n", headers=forged)
    assert made.status_code == 201
    assert made.json()["url"].startswith("https://triage.example.org/")
    for address in (
        "/",
        "/incidents",
        "/groups",
        "/groups/",
        "/login",
        "/incidents/1/",
        "//evil.example/",
        "/unexplained",
        "/api/v1/incidents",
        "/nothing",
    ):
        for headers in (forged, forged | PEOPLE, PEOPLE | {"host": EVIL}):
            answer = guarded.get(address, headers=headers)
            assert EVIL not in answer.headers.get("location", "").removeprefix("/login?next=%2F%2F"), address
            assert EVIL not in answer.text.replace("//evil.example/", ""), address


def test_a_login_with_a_slash_too_many_stays_inside(guarded: TestClient) -> None:
    sent = guarded.get("//evil.example/", headers=PEOPLE)
    if sent.is_redirect:
        entered = guarded.post(
            sent.headers["location"],
            data={"token": secret(guarded, Scope.READ), "next": "//evil.example/"},
            headers=PEOPLE,
        )
        assert entered.headers["location"] == "/"


def test_cookies_are_secure_where_the_page_is(guarded: TestClient, tmp_path: Path) -> None:
    entered = guarded.post("/login", data={"token": secret(guarded, Scope.READ)}, headers=PEOPLE)
    flags = entered.headers["set-cookie"].lower()
    assert "secure" in flags
    assert "httponly" in flags
    assert "samesite=lax" in flags
    settings = Settings(data_dir=tmp_path / "plain", workers=0, auth="tokens")
    with TestClient(create_app(settings), follow_redirects=False) as plain:
        entered = plain.post("/login", data={"token": secret(plain, Scope.READ)}, headers=PEOPLE)
        assert "secure" not in entered.headers["set-cookie"].lower()


def test_a_session_changes_nothing_for_another_site(guarded: TestClient) -> None:
    guarded.post("/login", data={"token": secret(guarded, Scope.ADMIN)}, headers=PEOPLE)
    incident = guarded.post(
        "/api/v1/incidents", content=b"RuntimeError: x\n", headers={"sec-fetch-site": "same-origin"}
    ).json()
    for headers in (
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": f"https://{EVIL}"},
        {"origin": "null"},
    ):
        for method, address in (
            ("POST", "/api/v1/incidents"), ("POST", "/api/v1/triage"), ("DELETE", f"/api/v1/incidents/{incident['id']}"),
            ("POST", f"/api/v1/incidents/{incident['id']}/feedback"), ("PATCH", f"/api/v1/groups/{incident['group']['id']}"),
            ("POST", "/"), ("POST", f"/groups/{incident['group']['id']}"), ("POST", "/login"), ("POST", "/logout"),
        ):  # fmt: skip
            answer = guarded.request(method, address, headers=headers, content=b"{}")
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "cross_site"), (method, address)
    assert guarded.get(f"/api/v1/incidents/{incident['id']}").status_code == 200


@pytest.mark.parametrize("host", [EVIL, f"{EVIL}:8000", "127.0.0.1.evil.example", "localhost.evil.example"])
def test_a_name_that_was_made_to_lead_to_this_machine_reads_nothing(client: TestClient, host: str) -> None:
    for address in ("/", "/incidents", "/api/v1/incidents", "/api/v1/knowledge", "/metrics"):
        answer = client.get(address, headers={"host": host})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "cross_site")
    same = {"host": host, "origin": f"http://{host}", "sec-fetch-site": "same-origin"}
    assert client.post("/api/v1/incidents", content=b"a log", headers=same).status_code == 403


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8000", "localhost:9000", "[::1]:8000", "head-node", "app.localhost", "10.0.0.7"]
)
def test_names_of_this_machine_do(client: TestClient, host: str) -> None:
    assert client.get("/api/v1/incidents", headers={"host": host}).status_code == 200


def test_the_name_in_the_settings_does(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, workers=0, public_url="https://triage.example.org/")
    with TestClient(create_app(settings)) as client:
        assert client.get("/api/v1/incidents", headers={"host": "triage.example.org"}).status_code == 200
        assert client.get("/api/v1/incidents", headers={"host": EVIL}).status_code == 403


@pytest.mark.parametrize(
    ("path", "content_type"),
    [
        ("/api/v1/incidents/1/feedback", "application/json"),
        ("/retriage", "application/x-www-form-urlencoded"),
        ("/incidents/bulk", "multipart/form-data; boundary=b"),
    ],
)
def test_a_body_that_is_no_log_is_read_only_up_to_a_limit(client: TestClient, path: str, content_type: str) -> None:
    answer = client.post(path, content=b"x" * (3 << 20), headers={"Content-Type": content_type})
    assert answer.status_code == 413
    assert answer.json()["error"]["code"]
