"""Login with an OpenID Connect provider: authorization code flow with PKCE, state and nonce.

The browser keeps the login's secrets until it returns. Needs the extra `oidc`.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import time
from typing import Any, cast
from urllib.parse import urlsplit

import httpx2
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.httpx_client import OAuth2Client
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from torchtriage.domain.access import Caller, Scope
from torchtriage.services.single_sign_on import Attempt, LoginRefused, ProviderUnavailable
from torchtriage.settings import Settings

log = logging.getLogger(__name__)
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"]
_CLOCKS = 60  # seconds that the provider's clock may differ from ours
_TIMEOUT = 10.0  # seconds
_KEPT = 3600.0  # seconds for which the provider's metadata is cached
_MAX_NAME_LENGTH = 200


class Provider:
    """The configured provider. Sends it no request before somebody logs in. Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._redirect = f"{settings.base_url}/login/oidc/callback"
        self._metadata: tuple[float, dict[str, Any]] = (0.0, {})

    def begin(self) -> tuple[str, Attempt]:
        """Returns the URL to which the browser goes, and the secrets that `finish` needs. Raises
        ProviderUnavailable."""
        attempt = Attempt(*(secrets.token_urlsafe(48) for _ in range(3)))
        endpoint = self._known()["authorization_endpoint"]
        with self._client() as client:
            url, _ = client.create_authorization_url(
                endpoint, state=attempt.state, code_verifier=attempt.verifier, nonce=attempt.nonce
            )
        return cast(str, url), attempt

    def finish(self, attempt: Attempt, state: str, code: str) -> Caller:
        """Returns the person who logged in. Raises LoginRefused and ProviderUnavailable."""
        if not hmac.compare_digest(state.encode(), attempt.state.encode()):
            raise LoginRefused("this login was started in another browser; log in again")
        metadata = self._known()
        try:
            with self._client() as client:
                token = client.fetch_token(
                    metadata["token_endpoint"],
                    grant_type="authorization_code",
                    code=code,
                    code_verifier=attempt.verifier,
                )
            claims = self._verified(token, attempt.nonce, self._get(metadata["jwks_uri"]))
        except httpx2.HTTPError as error:
            raise _unavailable(error) from error
        except (AuthlibBaseError, JoseError, ValueError, TypeError) as error:
            log.warning("a login was refused: %s", error)
            raise LoginRefused("the login provider's response is not valid; log in again") from error
        return self._caller(claims)

    def _verified(self, token: dict[str, Any], nonce: str, keys: dict[str, Any]) -> dict[str, Any]:
        """Returns the claims of the ID token. Raises JoseError, ValueError or TypeError if it is not valid for us and
        this login."""
        decoded = jwt.decode(token.get("id_token") or "", KeySet.import_key_set(cast(Any, keys)), _ALGORITHMS)
        settings = self._settings
        claims = CodeIDToken(
            decoded.claims,
            decoded.header,
            {
                "iss": {"essential": True, "value": settings.oidc_issuer},
                "aud": {"essential": True, "value": settings.oidc_client_id},
            },
            {"nonce": nonce, "client_id": settings.oidc_client_id, "access_token": token.get("access_token")},
        )
        claims.validate(leeway=_CLOCKS)
        return dict(claims)

    def _caller(self, claims: dict[str, Any]) -> Caller:
        found = claims.get(self._settings.oidc_claim) or []
        groups = {found} if isinstance(found, str) else set(map(str, found)) if isinstance(found, list) else set()
        scopes = set(self._settings.oidc_scopes)
        for group, allowed in self._settings.oidc_group_scopes:
            if group in groups:
                scopes |= allowed
        if not scopes:
            raise LoginRefused("none of your groups has access")
        return Caller(_name(claims), frozenset(map(Scope, scopes)))

    def _known(self) -> dict[str, Any]:
        """Returns the provider's metadata, from the cache if it is recent."""
        until, metadata = self._metadata
        if time.monotonic() < until:
            return metadata
        issuer = self._settings.oidc_issuer
        try:
            metadata = self._get(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
            if metadata["issuer"] != issuer:
                raise ValueError(f"the issuer identifies itself as {metadata['issuer']}")
            for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
                if urlsplit(metadata[name]).scheme != urlsplit(issuer).scheme:
                    raise ValueError(f"{name} is not https")
        except (httpx2.HTTPError, ValueError, KeyError, TypeError) as error:
            raise _unavailable(error) from error
        self._metadata = time.monotonic() + _KEPT, metadata
        return metadata

    def _get(self, url: str) -> dict[str, Any]:
        answer = httpx2.get(url, timeout=_TIMEOUT, follow_redirects=False).raise_for_status()
        return cast(dict[str, Any], answer.json())

    def _client(self) -> OAuth2Client:
        settings = self._settings
        return OAuth2Client(
            settings.oidc_client_id,
            settings.oidc_client_secret or None,
            token_endpoint_auth_method="client_secret_basic" if settings.oidc_client_secret else "none",
            scope="openid profile email",
            redirect_uri=self._redirect,
            code_challenge_method="S256",
            timeout=_TIMEOUT,
            follow_redirects=False,
        )


def _unavailable(error: Exception) -> ProviderUnavailable:
    log.error("the login provider is unavailable: %s: %s", type(error).__name__, error)
    return ProviderUnavailable("the login provider is unavailable; try again later")


def _name(claims: dict[str, Any]) -> str:
    """Returns the name for the audit log: a verified email, or else the name that the user chose together with the
    provider's fixed id."""
    if claims.get("email") and claims.get("email_verified") is True:
        return str(claims["email"])[:_MAX_NAME_LENGTH]
    called = claims.get("preferred_username") or claims.get("email")
    return (f"{called} ({claims['sub']})" if called else str(claims["sub"]))[:_MAX_NAME_LENGTH]
