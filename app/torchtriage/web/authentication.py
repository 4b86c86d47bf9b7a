"""Authenticates callers by a token in a header or by the cookie of a login."""

from __future__ import annotations

import base64
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Annotated, Any, cast

from anyio import to_thread
from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from torchtriage.domain.access import ANYONE, Caller, Scope
from torchtriage.errors import BadInput
from torchtriage.services import tokens
from torchtriage.services.service import Service
from torchtriage.web.rate_limits import RateLimit
from torchtriage.web.security import refuse_foreign_name

COOKIE = "torchtriage_session"
# Documents the authentication in OpenAPI; the check itself is below.
_bearer = HTTPBearer(auto_error=False, description="A token of `torchtriage token create`")


class Unauthorized(BadInput):
    """The request has no valid token."""

    status = 401
    code = "unauthorized"


class Forbidden(BadInput):
    """The token does not allow this request."""

    status = 403
    code = "forbidden"


def secret_of(request: Request) -> str | None:
    """Returns the secret of a request, from the Authorization header or else the cookie. Basic authentication, with the
    secret as the password, is for programs that can set only a URL."""
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and secret.strip():
        return secret.strip()
    if kind.lower() == "basic":
        with suppress(ValueError):
            return base64.b64decode(secret.strip(), validate=True).decode("ascii").partition(":")[2] or None
    return request.cookies.get(COOKIE)


def needs(scope: Scope) -> Callable[..., Coroutine[Any, Any, Caller]]:
    """Returns a dependency that provides the Caller. It raises Unauthorized, Forbidden or TooMany."""

    async def find(request: Request, _: Annotated[Any, Depends(_bearer)] = None) -> Caller:
        known: Caller | None = getattr(request.state, "caller", None)  # set already if a route requires two scopes
        caller = known or await _admitted(request)
        if not caller.may(scope):
            raise Forbidden(f"the token of {caller.name} lacks the scope {scope}", scope=scope)
        return caller

    return find


async def _admitted(request: Request) -> Caller:
    """Returns the caller, counts the request, and stores the caller for the request log."""
    service = cast(Service, request.app.state.service)
    limit, address = rate_limit(request)
    if service.settings.auth == "none":
        refuse_foreign_name(request, service.settings.public_url)
        caller = ANYONE
    else:
        try:
            caller = await to_thread.run_sync(_caller, service, request)
        except Unauthorized:
            limit.count(None, address)
            raise
    request.state.caller = caller
    limit.count(caller, address)
    return caller


def rate_limit(request: Request) -> tuple[RateLimit, str]:
    """Returns the rate limit and the client address under which it counts the request."""
    return cast(RateLimit, request.app.state.rate_limit), request.client.host if request.client else ""


def _caller(service: Service, request: Request) -> Caller:
    secret = secret_of(request)
    if secret is None:
        raise Unauthorized("no token: send Authorization: Bearer …")
    caller = tokens.caller_of(service.database, secret)
    if caller is None:
        raise Unauthorized("the token is invalid, expired or revoked")
    return caller


submitting = needs(Scope.SUBMIT)
Submitter = Annotated[Caller, Depends(submitting)]
Reader = Annotated[Caller, Depends(needs(Scope.READ))]
Writer = Annotated[Caller, Depends(needs(Scope.WRITE))]
Admin = Annotated[Caller, Depends(needs(Scope.ADMIN))]
