"""`/login` and `/logout`: exchanges a token for the cookie of a session, if the service uses tokens."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from starlette.responses import RedirectResponse

from torchtriage.domain.access import Caller
from torchtriage.services import tokens
from torchtriage.services.service import Service
from torchtriage.web.authentication import COOKIE, rate_limit
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.pages.rendering import render
from torchtriage.web.pages.urls import inside

router = APIRouter()
_SESSION = timedelta(hours=12)


@dataclass(frozen=True, slots=True)
class LoginPage:
    """`after` is the URL to open after the login. `provider`: login with a provider is possible. `refused`: the token
    was invalid."""

    after: str
    provider: bool
    refused: bool = False


@router.get("/login")
def login(request: Request, service: ServiceDep, next: str = "/") -> Response:
    if service.settings.auth == "none":
        return RedirectResponse("/", HTTPStatus.SEE_OTHER)
    return render(request, "login.html", LoginPage(inside(next), bool(service.settings.oidc_issuer)))


@router.post("/login")
def enter(
    request: Request,
    service: ServiceDep,
    token: Annotated[str, Form(max_length=200)] = "",
    next: Annotated[str, Form(max_length=2000)] = "/",
) -> Response:
    """Starts a session with the scopes of the token. The browser does not store the token itself. Raises TooMany."""
    limit, address = rate_limit(request)
    limit.before_login(address)
    caller = tokens.caller_of(service.database, token.strip(), sessions=False)  # a session must not make another
    if caller is None:
        limit.wrong_login(address)
        page = LoginPage(inside(next), bool(service.settings.oidc_issuer), refused=True)
        return render(request, "login.html", page, HTTPStatus.UNAUTHORIZED)
    limit.count(caller, address)
    return start_session(service, caller, inside(next))


@router.post("/logout")
def leave(request: Request, service: ServiceDep) -> Response:
    secret = request.cookies.get(COOKIE)
    if secret:
        tokens.end_session(service.database, secret)
    answer = RedirectResponse("/login", HTTPStatus.SEE_OTHER)
    answer.delete_cookie(COOKIE)
    return answer


def start_session(service: Service, caller: Caller, after: str) -> Response:
    """Returns a redirect to the page `after`, with the cookie of a new session with the caller's scopes."""
    secret, _ = tokens.begin_session(service.database, caller, _SESSION)
    answer = RedirectResponse(after, HTTPStatus.SEE_OTHER)
    answer.set_cookie(
        COOKIE,
        secret,
        max_age=int(_SESSION.total_seconds()),
        httponly=True,
        samesite="lax",
        secure=service.settings.base_url.startswith("https:"),
    )
    return answer
