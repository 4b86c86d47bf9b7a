"""Login with a provider, against a real one on loopback."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from fastapi.testclient import TestClient
from httpx2 import Response
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from tests.oidc import CLIENT, SECRET, OidcProvider, oidc_provider
from torchtriage.domain.access import Scope
from torchtriage.services import tokens
from torchtriage.services.service import Service
from torchtriage.settings import Settings
from torchtriage.storage.audit_log import ChangeFilter
from torchtriage.web.app import create_app

PEOPLE = {"accept": "text/html"}
OURS = "https://triage.example.org"


@pytest.fixture
def provider() -> Iterator[OidcProvider]:
    with oidc_provider() as running:
        yield running


def opened(folder: Path, provider: OidcProvider, **more: Any) -> TestClient:
    settings = Settings(
        data_dir=folder,
        workers=0,
        auth="tokens",
        public_url=OURS,
        oidc_issuer=provider.url,
        oidc_client_id=CLIENT,
        oidc_client_secret=SECRET,
        **more,
    )
    return TestClient(create_app(settings), base_url=OURS, headers=PEOPLE, follow_redirects=False)


@pytest.fixture
def client(tmp_path: Path, provider: OidcProvider) -> Iterator[TestClient]:
    groups = (("ml-admins", frozenset({"admin"})), ("cn=research,dc=org", frozenset({"write"})))
    with opened(tmp_path, provider, oidc_group_scopes=groups) as asked:
        yield asked


def there(client: TestClient, after: str = "/groups") -> str:
    """Returns the address to which the provider sends the browser of somebody who logs in."""
    begun = client.get("/login/oidc", params={"next": after})
    assert begun.status_code == 303, begun.text
    sent_back = httpx2.get(begun.headers["location"])
    assert sent_back.status_code == 302
    back: str = sent_back.headers["location"]
    assert back.startswith(f"{OURS}/login/oidc/callback?")
    return back


def log_in(client: TestClient, after: str = "/groups") -> Response:
    return client.get(there(client, after))


def scopes(client: TestClient) -> tuple[str, set[Scope]]:
    """Returns whom the session's cookie stands for, and what it allows."""
    service: Service = client.app.state.service  # type: ignore[attr-defined]
    caller = tokens.caller_of(service.database, client.cookies["torchtriage_session"])
    assert caller is not None
    return caller.name, set(caller.scopes)


def test_people_log_in_with_the_provider_and_out_again(client: TestClient, provider: OidcProvider) -> None:
    page = client.get("/login?next=/groups").text
    assert 'href="/login/oidc?next=%2Fgroups"' in page
    entered = log_in(client)
    assert (entered.status_code, entered.headers["location"]) == (303, "/groups")
    session = next(value for value in entered.headers.get_list("set-cookie") if "torchtriage_session" in value).lower()
    assert "httponly" in session
    assert "secure" in session
    assert "samesite=lax" in session
    assert client.get("/groups").status_code == 200
    assert scopes(client) == ("4711", {Scope.READ, Scope.SUBMIT})
    assert "torchtriage_login" not in client.cookies
    client.post("/logout")
    assert client.get("/groups").status_code == 303


def test_the_login_url_is_new_each_time_and_contains_no_secret(client: TestClient, provider: OidcProvider) -> None:
    first = {
        name: values[0]
        for name, values in parse_qs(urlsplit(client.get("/login/oidc").headers["location"]).query).items()
    }
    second = {
        name: values[0]
        for name, values in parse_qs(urlsplit(client.get("/login/oidc").headers["location"]).query).items()
    }
    assert first["redirect_uri"] == f"{OURS}/login/oidc/callback"
    for name in ("state", "nonce", "code_challenge"):
        assert len(first[name]) >= 43
        assert first[name] != second[name]
    assert not {"code_verifier", "client_secret"} & set(first)
    assert provider.discoveries == 1


@pytest.mark.parametrize(
    ("claims", "name", "allowed"),
    [
        ({"groups": ["ml-admins", "else"]}, "4711", {Scope.READ, Scope.SUBMIT, Scope.ADMIN}),
        ({"groups": "cn=research,dc=org"}, "4711", {Scope.READ, Scope.SUBMIT, Scope.WRITE}),
        ({"groups": {"ml-admins": 1}}, "4711", {Scope.READ, Scope.SUBMIT}),
        ({"email": "ann@example.org", "email_verified": True}, "ann@example.org", {Scope.READ, Scope.SUBMIT}),
        ({"email": "ann@example.org"}, "ann@example.org (4711)", {Scope.READ, Scope.SUBMIT}),
        ({"preferred_username": "root"}, "root (4711)", {Scope.READ, Scope.SUBMIT}),
    ],
)
def test_claims_tell_who_it_is_and_what_they_may(
    client: TestClient, provider: OidcProvider, claims: dict[str, Any], name: str, allowed: set[Scope]
) -> None:
    provider.claims = claims
    assert log_in(client).status_code == 303
    assert scopes(client) == (name, allowed)


def test_where_groups_let_in_others_stay_out(tmp_path: Path, provider: OidcProvider) -> None:
    groups = (("research", frozenset({"read"})),)
    with opened(tmp_path, provider, oidc_scopes=frozenset(), oidc_group_scopes=groups) as client:
        refused = log_in(client)
        assert refused.status_code == 403
        assert "groups" in refused.text
        provider.claims = {"groups": ["research"]}
        assert log_in(client).status_code == 303


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "another"},
        {"aud": [CLIENT, "another"]},
        {"azp": "another"},
        {"iss": "https://another.example.org"},
        {"exp": int(time.time()) - 3600},
        {"exp": None},
        {"iat": int(time.time()) + 3600},
        {"sub": None},
        {"at_hash": "bm90IGl0"},
    ],
    ids=lambda claims: next(iter(claims)),
)
def test_an_id_token_that_is_not_for_this_login_lets_nobody_in(
    client: TestClient, provider: OidcProvider, claims: dict[str, Any]
) -> None:
    provider.claims = claims
    refused(client, log_in(client))


def refused(client: TestClient, answer: Response) -> None:
    assert answer.status_code == 403, answer.text
    assert "torchtriage_session" not in client.cookies
    assert client.get("/groups").status_code == 303


def test_an_id_token_that_the_provider_did_not_sign_lets_nobody_in(
    client: TestClient, provider: OidcProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, good = provider.key, provider.id_token
    provider.key = RSAKey.generate_key(2048, {"kid": "first"}, auto_kid=False)
    refused(client, log_in(client))
    provider.key = real
    for header, key in (({"alg": "HS256"}, OctKey.import_key(SECRET * 2)), ({"alg": "none"}, None)):

        def forged(nonce: str, header: dict[str, str] = header, key: Any = key) -> str:
            claims = jwt.decode(good(nonce), real).claims
            if key is None:
                body = jwt.encode({"alg": "RS256"}, claims, real).split(".")[1]
                return f"eyJhbGciOiJub25lIn0.{body}."
            return jwt.encode(header, claims, key)

        with monkeypatch.context() as patched:
            patched.setattr(provider, "id_token", forged)
            refused(client, log_in(client))
    assert log_in(client).status_code == 303


def test_keys_that_the_provider_changes_are_followed(client: TestClient, provider: OidcProvider) -> None:
    assert log_in(client).status_code == 303
    provider.key = RSAKey.generate_key(2048, {"kid": "second"}, auto_kid=False)
    provider.shown = [*provider.shown, provider.key]
    assert log_in(client).status_code == 303


def test_a_login_ends_only_in_the_browser_that_began_it(client: TestClient, tmp_path: Path) -> None:
    back = there(client)
    kept = dict(client.cookies)
    client.cookies.clear()
    refused(client, client.get(back))
    client.get("/login/oidc")  # another login, begun here
    refused(client, client.get(back))
    client.cookies.clear()
    client.cookies.update(kept)
    assert client.get(back).status_code == 303
    client.cookies.clear()
    client.cookies.update(kept)
    refused(client, client.get(back))  # a code is used once


ODD = (b'["a", "b", "c", "/"]', b'["\\ud800", "b", "c", "/"]', b"[" * 3000)


@pytest.mark.parametrize(
    "query", ["", "?code=x", "?state=x&code=x", "?error=access_denied&state=x", "?code=%00&state=é"]
)
@pytest.mark.parametrize("cookie", ["", "zz", "5b5d", *(odd.hex() for odd in ODD)])
def test_a_callback_out_of_nowhere_is_refused(client: TestClient, query: str, cookie: str) -> None:
    client.cookies.set("torchtriage_login", cookie)
    refused(client, client.get(f"/login/oidc/callback{query}"))


@pytest.mark.parametrize("elsewhere", ["https://example.org/", "//example.org/", "/\\example.org"])
def test_it_leads_to_no_other_site(client: TestClient, elsewhere: str) -> None:
    assert log_in(client, elsewhere).headers["location"] == "/"


def test_a_provider_that_is_down_or_wrong_is_reported_and_recovers(client: TestClient, provider: OidcProvider) -> None:
    provider.down = True
    answer = client.get("/login/oidc")
    assert answer.status_code == 503
    assert "provider" in answer.text
    provider.down = False
    provider.metadata = {"issuer": "https://another.example.org"}
    assert client.get("/login/oidc").status_code == 503
    provider.metadata = {"token_endpoint": "file:///etc/passwd"}
    assert client.get("/login/oidc").status_code == 503
    provider.metadata = {}
    assert log_in(client).status_code == 303


def test_without_a_provider_there_is_no_such_login(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, workers=0, auth="tokens")
    with TestClient(create_app(settings), headers=PEOPLE, follow_redirects=False) as client:
        assert "/login/oidc" not in client.get("/login").text
        assert (
            client.get("/login/oidc").status_code
            == client.get("/login/oidc/callback?code=a&state=b").status_code
            == 404
        )


def test_the_session_and_its_trail_are_written_down(client: TestClient, provider: OidcProvider) -> None:
    log_in(client)
    service: Service = client.app.state.service  # type: ignore[attr-defined]
    assert [(change.by, change.action) for change in tokens.changes(service.database, ChangeFilter(), 10).items] == [
        ("4711", "login")
    ]


def test_a_session_can_be_ended_by_who_runs_the_service(client: TestClient) -> None:
    log_in(client)
    database = client.app.state.service.database  # type: ignore[attr-defined]
    (session,) = tokens.listed(database, sessions=True)
    assert tokens.listed(database) == []
    tokens.revoke(database, session.id, "a test")
    assert client.get("/groups").status_code == 303


def test_logins_that_the_provider_does_not_back_are_limited_before_it_is_asked(
    client: TestClient, provider: OidcProvider
) -> None:
    back = there(client)
    refused = [client.get("/login/oidc/callback", params={"code": "x", "state": "y"}).status_code for _ in range(12)]
    assert refused == [403] * 10 + [429] * 2
    answer = client.get(back)
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) <= 60
