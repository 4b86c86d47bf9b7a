"""A small OpenID Connect provider on loopback. It logs everybody in and checks its clients strictly.

Tests change its attributes to change its next answer.
"""

from __future__ import annotations

import base64
import functools
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "torchtriage", "s3cret-of-the-client"


@functools.cache
def first_key() -> RSAKey:
    """Returns a key shared by all providers, because generating one is slow and no test changes it."""
    return RSAKey.generate_key(2048, {"kid": "first"}, auto_kid=False)


class OidcProvider:
    """`claims` override those of the next ID token; None removes a claim."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.key = first_key()
        self.shown = [self.key]
        self.claims: dict[str, Any] = {}
        self.metadata: dict[str, Any] = {}
        self.asked: dict[str, str] = {}  # the last authorization request
        self.down = False
        self.discoveries = 0
        self._codes: dict[str, dict[str, str]] = {}

    def discovery(self) -> dict[str, Any]:
        self.discoveries += 1
        ends = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/keys"}
        return {"issuer": self.url, **{name: self.url + path for name, path in ends.items()}, **self.metadata}

    def authorize(self, asked: dict[str, str]) -> str:
        """Returns the URL to which the browser is sent after the login."""
        self.asked = asked
        assert asked["client_id"] == CLIENT
        assert asked["response_type"] == "code"
        assert "openid" in asked["scope"].split()
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe()
        self._codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def token(self, asked: dict[str, str], authorization: str) -> dict[str, Any]:
        """Returns the tokens for a code, or an error in the form of RFC 6749. A code can be used once."""
        if authorization != "Basic " + base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode():
            return {"error": "invalid_client"}
        given = self._codes.pop(asked.get("code", ""), None)
        if (
            given is None
            or asked.get("redirect_uri") != given["redirect_uri"]
            or create_s256_code_challenge(asked.get("code_verifier", "")) != given["code_challenge"]
        ):
            return {"error": "invalid_grant"}
        return {
            "access_token": secrets.token_urlsafe(),
            "token_type": "Bearer",
            "id_token": self.id_token(given["nonce"]),
        }

    def id_token(self, nonce: str) -> str:
        now = int(time.time())
        usual = {"iss": self.url, "sub": "4711", "aud": CLIENT, "exp": now + 300, "iat": now, "nonce": nonce}
        claims = {name: value for name, value in (usual | self.claims).items() if value is not None}
        return jwt.encode({"alg": "RS256", "kid": self.key.kid}, claims, self.key)


@contextmanager
def oidc_provider() -> Iterator[OidcProvider]:
    """Runs a provider inside the `with` block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
            if provider.down:
                self.send_error(503)
            elif parts.path == "/authorize":
                self.send_response(302)
                self.send_header("Location", provider.authorize(asked))
                self.end_headers()
            elif parts.path == "/keys":
                self._answer({"keys": [key.as_dict(private=False) for key in provider.shown]})
            else:
                assert parts.path == "/.well-known/openid-configuration"
                self._answer(provider.discovery())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            asked = {name: values[0] for name, values in parse_qs(body).items()}
            answer = provider.token(asked, self.headers.get("Authorization", ""))
            self._answer(answer, 400 if "error" in answer else 200)

        def _answer(self, content: dict[str, Any], status: int = 200) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        provider = OidcProvider(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()
