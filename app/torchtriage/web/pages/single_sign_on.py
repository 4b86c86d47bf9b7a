"""`/login/oidc` and its callback: login through an OpenID Connect provider, which starts a session like a token
does."""

from __future__ import annotations

import json
from dataclasses import astuple
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, cast

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import RedirectResponse

from torchtriage.errors import NotFound
from torchtriage.services.single_sign_on import Attempt, LoginRefused
from torchtriage.web.authentication import rate_limit
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.pages.login import start_session
from torchtriage.web.pages.urls import inside

if TYPE_CHECKING:
    from torchtriage.services.oidc_provider import Provider

router = APIRouter()
_COOKIE = "torchtriage_login"
_PATH = "/login/oidc"
_MINUTES = 10  # that somebody may take at the provider
_Text = Annotated[str, Query(max_length=4096)]


@router.get(_PATH)
def begin(request: Request, service: ServiceDep, next: _Text = "/") -> Response:
    """Redirects the browser to the provider. Raises NotFound if there is none, or TooMany."""
    limit, address = rate_limit(request)
    limit.count(None, address)
    url, attempt = _provider(request).begin()
    answer = RedirectResponse(url, HTTPStatus.SEE_OTHER)
    kept = json.dumps([*astuple(attempt), inside(next)]).encode().hex()
    secure = service.settings.base_url.startswith("https:")
    answer.set_cookie(_COOKIE, kept, max_age=_MINUTES * 60, path=_PATH, httponly=True, samesite="lax", secure=secure)
    return answer


@router.get(f"{_PATH}/callback")
def finish(request: Request, service: ServiceDep, code: _Text = "", state: _Text = "", error: _Text = "") -> Response:
    """Starts a session for the user that the provider confirmed. Raises LoginRefused, ProviderUnavailable or
    TooMany."""
    provider = _provider(request)
    limit, address = rate_limit(request)
    limit.before_login(address)
    try:
        attempt, after = _kept(request)
        if error or not code:
            raise LoginRefused(f"the login provider refused the login: {error[:100] or 'no code in its response'}")
        caller = provider.finish(attempt, state, code)
    except LoginRefused:
        limit.wrong_login(address)
        raise
    limit.count(caller, address)
    answer = start_session(service, caller, after)
    answer.delete_cookie(_COOKIE, path=_PATH)
    return answer


def _provider(request: Request) -> Provider:
    found = request.app.state.provider
    if found is None:
        raise NotFound("single sign-on is not configured")
    return cast("Provider", found)


def _kept(request: Request) -> tuple[Attempt, str]:
    """Returns the login that this browser started. Raises LoginRefused."""
    try:
        state, nonce, verifier, after = map(str, json.loads(bytes.fromhex(request.cookies.get(_COOKIE, ""))))
        "".join((state, nonce, verifier, after)).encode()  # half of a character's pair can't be sent anywhere
    except (ValueError, TypeError, RecursionError):
        raise LoginRefused("this login was started in another browser, or too long ago; log in again") from None
    return Attempt(state, nonce, verifier), inside(after)
