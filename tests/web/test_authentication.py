from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.services.logs import OUT_OF_MEMORY
from torchtriage.domain.access import Caller, Scope
from torchtriage.errors import BadInput
from torchtriage.services import tokens as access
from torchtriage.services.service import Service
from torchtriage.settings import Settings
from torchtriage.storage import tokens
from torchtriage.storage.audit_log import ChangeFilter
from torchtriage.web.app import create_app

PEOPLE = {"accept": "text/html"}


@pytest.fixture
def guarded(tmp_path: Path, database_url: str) -> Iterator[TestClient]:
    """A service that wants tokens, on SQLite and on Postgres in turn."""
    settings = Settings(data_dir=tmp_path, database_url=database_url, workers=0, auth="tokens", host="0.0.0.0")
    with TestClient(create_app(settings), follow_redirects=False) as asked:
        yield asked


def service_of(client: TestClient) -> Service:
    service: Service = client.app.state.service  # type: ignore[attr-defined]
    return service


def token(client: TestClient, *scopes: Scope, lifetime: timedelta | None = None) -> dict[str, str]:
    """Returns the header of a new token."""
    secret, _ = access.create(service_of(client).database, "ann", scopes, lifetime, "a test")
    return {"authorization": f"Bearer {secret}"}


ASKED = [
    ("POST", "/api/v1/incidents", Scope.SUBMIT),
    ("POST", "/api/v1/triage", Scope.SUBMIT),
    ("POST", "/api/v1/decision", Scope.SUBMIT),
    ("GET", "/api/v1/decisions", Scope.READ),
    ("GET", "/decisions", Scope.READ),
    ("GET", "/api/v1/incidents", Scope.READ),
    ("GET", "/api/v1/incidents/1", Scope.READ),
    ("GET", "/api/v1/incidents/1/log", Scope.READ),
    ("DELETE", "/api/v1/incidents/1", Scope.WRITE),
    ("POST", "/api/v1/incidents/1/feedback", Scope.WRITE),
    ("GET", "/api/v1/groups", Scope.READ),
    ("GET", "/api/v1/groups/1", Scope.READ),
    ("PATCH", "/api/v1/groups/1", Scope.WRITE),
    ("POST", "/api/v1/groups/1/merge", Scope.WRITE),
    ("POST", "/api/v1/groups/1/split", Scope.WRITE),
    ("GET", "/api/v1/knowledge", Scope.READ),
    ("GET", "/api/v1/knowledge/cuda.oom", Scope.READ),
    ("GET", "/api/v1/knowledge/search", Scope.READ),
    ("GET", "/", Scope.READ),
    ("POST", "/", Scope.SUBMIT),
    ("GET", "/incidents", Scope.READ),
    ("GET", "/groups", Scope.READ),
    ("POST", "/groups/1", Scope.WRITE),
    ("GET", "/api/v1/changes", Scope.ADMIN),
    ("GET", "/settings", Scope.ADMIN),
    ("GET", "/changes", Scope.ADMIN),
    ("POST", "/settings/tokens", Scope.ADMIN),
    ("POST", "/retriage/all", Scope.ADMIN),
    ("POST", "/mcp", Scope.READ),
    ("GET", "/knowledge", Scope.READ),
]


def test_every_route_asks_for_its_scope(guarded: TestClient) -> None:
    for method, path, scope in ASKED:
        refused = guarded.request(method, path)
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "unauthorized"), path
        assert refused.headers["www-authenticate"] == "Bearer"
        others = [other for other in Scope if other not in (scope, Scope.ADMIN)]
        answer = guarded.request(method, path, headers=token(guarded, *others))
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden"), path
        for scopes in ([scope, Scope.READ], [Scope.ADMIN]):  # a page's form asks for a right to read as well
            assert guarded.request(method, path, headers=token(guarded, *scopes)).status_code not in (401, 403), path


def test_no_route_is_forgotten(guarded: TestClient) -> None:
    documented = guarded.get("/openapi.json").json()["paths"]
    open_to_all = {"/healthz", "/readyz", "/client.py"}
    open_to_all |= {"/slack/commands", "/slack/interactions", "/slack/events"}  # what counts there is Slack's signature
    for path, methods in documented.items():
        for method in methods:
            status = guarded.request(method, path.replace("{", "").replace("}", "")).status_code
            assert (status == 401) != (path in open_to_all), (method, path)


def every_route(routes: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Yields method and path of each route, pages too."""
    for route in routes:
        if inner := getattr(route, "original_router", None):
            yield from every_route(inner.routes)
        for method in getattr(route, "methods", None) or ():
            yield method, route.path


def test_no_page_is_forgotten_and_nothing_is_changed_for_another_site(guarded: TestClient) -> None:
    open_to_all = {"/healthz", "/readyz", "/client.py", "/openapi.json", "/login", "/logout"}
    open_to_all |= {"/login/oidc", "/login/oidc/callback", "/theme"}
    known = sorted(every_route(guarded.app.routes))  # type: ignore[attr-defined]
    assert {("GET", "/settings"), ("POST", "/mcp"), ("DELETE", "/api/v1/incidents/{incident}")} <= set(known)
    for method, path in known:
        if path.startswith("/slack/"):
            continue  # what counts there is Slack's signature
        asked = re.sub("{.*?}", "7", path)
        refused = "www-authenticate" in guarded.request(method, asked).headers
        assert refused != (path in open_to_all), (method, path)
        if method not in ("GET", "HEAD"):
            answer = guarded.request(method, asked, headers={"sec-fetch-site": "cross-site"})
            assert answer.json()["error"]["code"] == "cross_site", (method, path)


def test_health_needs_no_token(guarded: TestClient) -> None:
    assert guarded.get("/healthz").status_code == guarded.get("/readyz").status_code == 200


def test_expired_revoked_and_made_up_tokens_let_nobody_in(guarded: TestClient) -> None:
    database = service_of(guarded).database
    expired = token(guarded, Scope.READ, lifetime=timedelta(seconds=-1))
    secret, known = access.create(database, "bob", [Scope.READ], None, "a test")
    revoked = {"authorization": f"Bearer {secret}"}
    assert guarded.get("/api/v1/groups", headers=revoked).status_code == 200
    assert access.listed(database)[0].last_used_at is not None
    access.revoke(database, known.id, "a test")
    for header in (expired, revoked, {"authorization": "Bearer tt_x"}, {"authorization": "Basic YTpi"}):
        assert guarded.get("/api/v1/groups", headers=header).status_code == 401


def test_people_log_in_with_a_token_and_out_again(guarded: TestClient) -> None:
    sent_away = guarded.get("/groups?status=open", headers=PEOPLE)
    assert (sent_away.status_code, sent_away.headers["location"]) == (303, "/login?next=%2Fgroups%3Fstatus%3Dopen")
    assert "Log in" in guarded.get(sent_away.headers["location"], headers=PEOPLE).text
    assert guarded.post("/login", data={"token": "tt_wrong"}, headers=PEOPLE).status_code == 401
    secret = token(guarded, Scope.READ, Scope.SUBMIT)["authorization"].split()[1]
    entered = guarded.post("/login", data={"token": secret, "next": "/groups?status=open"}, headers=PEOPLE)
    assert (entered.status_code, entered.headers["location"]) == (303, "/groups?status=open")
    assert "httponly" in entered.headers["set-cookie"].lower()
    assert secret not in entered.headers["set-cookie"]
    assert guarded.get("/groups", headers=PEOPLE).status_code == 200
    kept = guarded.cookies["torchtriage_session"]
    assert guarded.post("/logout", headers=PEOPLE).headers["location"] == "/login"
    guarded.cookies.set("torchtriage_session", kept)
    assert guarded.get("/groups", headers=PEOPLE).status_code == 303


@pytest.mark.parametrize("name", ["", " \n", "a" * 101])
def test_a_token_has_a_name(guarded: TestClient, name: str) -> None:
    with pytest.raises(BadInput, match="name"):
        access.create(service_of(guarded).database, name, [Scope.READ], None, "a test")


def test_a_session_ends_with_its_token_and_makes_no_other(guarded: TestClient) -> None:
    database = service_of(guarded).database
    secret, known = access.create(database, "ann", [Scope.READ], None, "a test")
    guarded.post("/login", data={"token": secret}, headers=PEOPLE)
    session = guarded.cookies["torchtriage_session"]
    assert guarded.get("/groups", headers=PEOPLE).status_code == 200
    assert guarded.post("/login", data={"token": session}).status_code == 401
    access.revoke(database, known.id, "a test")
    assert guarded.get("/groups", headers=PEOPLE).status_code == 303
    assert access.caller_of(database, session) is None


def test_a_session_ends_when_its_token_expires(guarded: TestClient) -> None:
    database = service_of(guarded).database
    secret, _ = access.create(database, "ann", [Scope.READ], timedelta(hours=1), "a test")
    guarded.post("/login", data={"token": secret}, headers=PEOPLE)
    with database.reading() as session:
        digest = hashlib.sha256(guarded.cookies["torchtriage_session"].encode()).hexdigest()
        for hours, there in ((0.9, True), (1.1, False)):
            found = tokens.valid(session, digest, datetime.now(UTC) + timedelta(hours=hours))
            assert (found is not None) is there


@pytest.mark.parametrize("elsewhere", ["https://example.org/", "//example.org/", "/\\example.org", "javascript:1"])
def test_a_login_leads_to_no_other_site(guarded: TestClient, elsewhere: str) -> None:
    secret = token(guarded, Scope.READ)["authorization"].split()[1]
    entered = guarded.post("/login", data={"token": secret, "next": elsewhere}, headers=PEOPLE)
    assert entered.headers["location"] == "/"


def test_the_author_of_each_change_is_recorded(guarded: TestClient) -> None:
    sender, writer = token(guarded, Scope.SUBMIT), token(guarded, Scope.WRITE)
    incident = guarded.post("/api/v1/incidents", content=OUT_OF_MEMORY, headers=sender).json()
    group = incident["group"]["id"]
    assert guarded.patch(f"/api/v1/groups/{group}", json={"owner": "bob"}, headers=writer).json()["owner"] == "bob"
    said = {"verdict": "wrong", "entry": "cuda.driver-mismatch", "note": "no"}
    answer = guarded.post(f"/api/v1/incidents/{incident['id']}/feedback", json=said, headers=writer)
    assert [(told["verdict"], told["by"]) for told in answer.json()["feedback"]] == [("wrong", "ann")]
    assert guarded.delete(f"/api/v1/incidents/{incident['id']}", headers=writer).status_code == 204
    trail = access.changes(service_of(guarded).database, ChangeFilter(), 10)
    done = [(change.by, change.action, change.subject.split()[0]) for change in trail.items]
    assert done[:3] == [("ann", "forget", "incident"), ("ann", "feedback", "incident"), ("ann", "change", "group")]


def test_a_caller_over_the_rate_limit_has_to_wait(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, workers=0, rate_limit="3/hour")
    with TestClient(create_app(settings)) as client:
        statuses = [client.get("/api/v1/groups").status_code for _ in range(5)]
        assert statuses == [200, 200, 200, 429, 429]
        assert int(client.get("/api/v1/groups").headers["retry-after"]) > 3000


def test_each_token_has_its_own_limit_whatever_its_name(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, workers=0, auth="tokens", host="0.0.0.0", rate_limit="2/hour")
    with TestClient(create_app(settings)) as client:
        for _ in range(2):
            header = token(client, Scope.READ, Scope.WRITE)
            statuses = [client.post("/groups/1", headers=header).status_code for _ in range(3)]
            assert (statuses.count(429), statuses[2]) == (1, 429)  # a page asks for two rights, which is one request


def at(app: FastAPI, address: str) -> TestClient:
    """Returns somebody at this address, who asks an application that runs."""
    return TestClient(app, client=(address, 50000), follow_redirects=False)


def test_wrong_logins_of_an_address_are_limited_and_nobody_elses_login(guarded: TestClient) -> None:
    app: FastAPI = guarded.app  # type: ignore[assignment]
    right = token(guarded, Scope.READ)["authorization"].split()[1]
    guesser = at(app, "203.0.113.7")
    statuses = [guesser.post("/login", data={"token": f"tt_{number}"}).status_code for number in range(14)]
    assert statuses == [401] * 10 + [429] * 4
    refused = guesser.post("/login", data={"token": right})  # what it shows is not looked at
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_requests")
    assert 0 < int(refused.headers["retry-after"]) <= 60
    page = guesser.post("/login", data={"token": "x"}, headers=PEOPLE | {"accept-language": "zh"})
    assert page.status_code == 429
    assert page.headers["retry-after"]
    assert "来自 203.0.113.7 的登录失败次数过多" in page.text
    assert at(app, "203.0.113.8").post("/login", data={"token": right}).status_code == 303
    assert guesser.get("/groups", headers={"authorization": f"Bearer {right}"}).status_code == 200


def test_right_logins_are_no_wrong_ones(guarded: TestClient) -> None:
    right = token(guarded, Scope.READ)["authorization"].split()[1]
    assert {guarded.post("/login", data={"token": right}).status_code for _ in range(15)} == {303}


def test_of_ipv6_the_network_is_limited(guarded: TestClient) -> None:
    app: FastAPI = guarded.app  # type: ignore[assignment]

    def status(address: str) -> int:
        return at(app, address).post("/login", data={"token": "x"}).status_code

    assert [status(f"2001:db8::{number:x}") for number in range(12)] == [401] * 10 + [429] * 2
    assert status("2001:db8:0:1::1") == 401


def test_logins_and_wrong_tokens_count_to_the_rate_limit(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, workers=0, auth="tokens", host="0.0.0.0", rate_limit="3/hour")
    with TestClient(create_app(settings), follow_redirects=False) as client:
        right = token(client, Scope.READ)
        secret = right["authorization"].split()[1]
        wrong = {"authorization": "Bearer tt_wrong"}
        assert [client.get("/api/v1/groups", headers=wrong).status_code for _ in range(5)] == [401] * 3 + [429] * 2
        asked = [client.post("/login", data={"token": secret}).status_code for _ in range(2)]
        asked += [client.get("/api/v1/groups", headers=right).status_code for _ in range(2)]
        assert asked == [303, 303, 200, 429]  # of the token, from the same address


FORWARDED = (
    # who asks, what it says, whom it stands for where 10.0.0.0/8 and 2001:db8::/32 are proxies
    ("203.0.113.7", "198.51.100.1", "203.0.113.7"),
    ("10.1.2.3", "198.51.100.1", "198.51.100.1"),
    ("10.1.2.3", "192.0.2.9, 198.51.100.1", "198.51.100.1"),  # what the sender itself wrote does not count
    ("10.1.2.3", "192.0.2.9, 198.51.100.1, 10.9.9.9", "198.51.100.1"),
    ("10.1.2.3", "10.9.9.8, 10.9.9.9", "10.9.9.8"),
    ("10.1.2.3", "198.51.100.1:4711", "198.51.100.1"),
    ("2001:db8::1", "[2001:dead::1]:99", "2001:dead::/64"),
    ("10.1.2.3", "", "10.1.2.3"),
)


@pytest.mark.parametrize(("peer", "said", "counted"), FORWARDED)
def test_the_forwarded_address_is_used_only_from_trusted_proxies(
    tmp_path: Path, peer: str, said: str, counted: str
) -> None:
    settings = Settings(
        data_dir=tmp_path, workers=0, rate_limit="1/hour", trusted_proxies=("10.0.0.0/8", "2001:db8::/32")
    )
    app = create_app(settings)
    with TestClient(app):
        asked = at(app, peer)
        assert asked.get("/api/v1/groups", headers={"x-forwarded-for": said}).status_code == 200
        refused = asked.get("/api/v1/groups", headers={"x-forwarded-for": said})
        assert f" from {counted};" in refused.json()["error"]["message"]


def test_without_proxies_in_the_settings_nobody_is_believed(tmp_path: Path) -> None:
    app = create_app(Settings(data_dir=tmp_path, workers=0, rate_limit="3/hour"))
    with TestClient(app):
        statuses = [
            at(app, "127.0.0.1").get("/api/v1/groups", headers={"x-forwarded-for": f"203.0.113.{number}"}).status_code
            for number in range(5)
        ]
    assert statuses == [200, 200, 200, 429, 429]


def test_a_token_has_so_many_sessions_and_the_oldest_ends(guarded: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "MAX_SESSIONS", 3)
    database = service_of(guarded).database
    (mine, known), (other, _) = (access.create(database, "ann", [Scope.READ], None, "a test") for _ in range(2))

    def begun(secret: str) -> str:
        guarded.cookies.clear()
        assert guarded.post("/login", data={"token": secret}).status_code == 303
        return guarded.cookies["torchtriage_session"]

    elsewhere = begun(other)
    sessions = [begun(mine) for _ in range(5)]
    assert [access.caller_of(database, session) is not None for session in sessions] == [False, False, True, True, True]
    assert access.caller_of(database, elsewhere) is not None
    assert access.caller_of(database, mine) is not None
    assert len([one for one in access.listed(database, sessions=True) if one.begun_with == known.id]) == 3
    ended = [change for change in access.changes(database, ChangeFilter(), 20).items if change.action == "revoke"]
    assert [(change.by, change.detail["before"]["token"]) for change in ended] == [("ann", known.id)] * 2
    access.end_session(database, sessions[3])
    again = begun(mine)
    assert access.caller_of(database, sessions[2]) is not None  # one that was ended is none
    assert access.caller_of(database, again) is not None


def test_people_of_a_provider_have_so_many_sessions_each(guarded: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "MAX_SESSIONS", 2)
    database = service_of(guarded).database
    ann, bob = (Caller(name, frozenset({Scope.READ})) for name in ("ann@example.org", "bob@example.org"))
    secrets = [access.begin_session(database, who, timedelta(hours=1))[0] for who in (bob, ann, ann, ann)]
    assert [access.caller_of(database, secret) is not None for secret in secrets] == [True, False, True, True]


def test_logins_at_the_same_moment_leave_no_more_sessions(guarded: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "MAX_SESSIONS", 3)
    database = service_of(guarded).database
    ann = Caller("ann@example.org", frozenset({Scope.READ}))
    with ThreadPoolExecutor(8) as threads:
        for begun in [threads.submit(access.begin_session, database, ann, timedelta(hours=1)) for _ in range(24)]:
            begun.result()
    assert len(access.listed(database, sessions=True)) == 3


def test_a_caller_without_read_access_learns_only_the_state_of_a_repeat(guarded: TestClient) -> None:
    sender, reader = token(guarded, Scope.SUBMIT), token(guarded, Scope.SUBMIT, Scope.READ)
    place = "/api/v1/incidents?job_id=4711&wait=60"
    first = guarded.post(place, content=OUT_OF_MEMORY, headers=sender)
    assert (first.status_code, first.json()["verdict"]["outcome"]) == (201, "explained")
    again = guarded.post(place, content=OUT_OF_MEMORY, headers=sender)
    assert (again.status_code, again.json()) == (200, {"id": first.json()["id"], "state": "triaged"})
    assert again.headers["location"] == first.headers["location"]
    for scopes in ((Scope.SUBMIT, Scope.READ), (Scope.ADMIN,)):
        told = guarded.post(place, content=OUT_OF_MEMORY, headers=token(guarded, *scopes))
        assert (told.status_code, told.json()["verdict"]) == (200, first.json()["verdict"])
    assert guarded.get(again.headers["location"], headers=reader).status_code == 200


def test_a_sender_that_waits_for_another_node_reads_nothing_of_its_log(guarded: TestClient) -> None:
    sender, reader = token(guarded, Scope.SUBMIT), token(guarded, Scope.READ)
    place = "/api/v1/incidents?job_id=7&nodes=2&wait=60&node_rank="
    with ThreadPoolExecutor() as pool:
        first = pool.submit(guarded.post, f"{place}0", content=b"step 1 loss 2.5\n", headers=sender)
        while not guarded.get("/api/v1/incidents", headers=reader).json()["items"]:
            time.sleep(0.05)  # the second report is to find the first one there
        assert set(guarded.post(f"{place}1", content=OUT_OF_MEMORY, headers=sender).json()) == {"id", "state"}
        assert first.result().json() == {"id": "1", "state": "triaged"}
    assert guarded.get("/api/v1/incidents/1", headers=reader).json()["verdict"]["root_cause"]["entry"] == "cuda.oom"


def test_who_takes_an_incident_becomes_the_owner_of_its_group(guarded: TestClient) -> None:
    writer = token(guarded, Scope.SUBMIT, Scope.READ, Scope.WRITE)
    made = guarded.post("/api/v1/incidents?wait=60", content=OUT_OF_MEMORY, headers=writer).json()
    page = f"/incidents/{made['id']}"
    assert "Assign to me" in guarded.get(page, headers=writer | PEOPLE).text
    assert guarded.post(f"{page}/take", headers=token(guarded, Scope.READ)).status_code == 403
    assert guarded.post(f"{page}/take", headers=writer | PEOPLE).headers["location"] == page
    taken = guarded.get(page, headers=writer | PEOPLE).text
    assert "Assign to me" not in taken
    assert "ann" in taken
