"""Errors as HTTP: an exception in, a status and `{"error": {"code", "message", "detail"}}` out."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any, cast

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from torchtriage.errors import BadInput, TriageError
from torchtriage.web.json_responses import Answer

log = logging.getLogger(__name__)
RETRY_AFTER = "5"  # seconds


class ErrorForm(BaseModel):
    """`code` is for programs, `message` for people, `detail` for both."""

    code: str
    message: str
    detail: dict[str, Any]


class ErrorBody(BaseModel):
    """What every answer of status 400 and above holds."""

    error: ErrorForm


class UnsupportedBody(BadInput):
    """The body is in a form that is not taken."""

    status = 415
    code = "unsupported_body"


class TooSlow(BadInput):
    """The sender stopped sending."""

    status = 408
    code = "too_slow"


class Busy(TriageError):
    """So much is being taken in that this is not; later it can be."""

    status = 503
    code = "busy"


class Stopping(TriageError):
    """The server stops before the request is answered; another, or the same when it runs again, can do it."""

    status = 503
    code = "stopping"

    def __init__(self) -> None:
        super().__init__("the service is shutting down; send this again")


def error_responses(*statuses: int, guarded: bool = True) -> dict[int | str, dict[str, Any]]:
    """-> what a route says in the OpenAPI document about the errors it can give; 500 and 503 any can.

    A `guarded` one asks for a token where the service wants tokens.
    """
    every = sorted({*statuses, *((401, 403, 429) if guarded else ()), 500, 503})
    return {status: {"model": ErrorBody, "description": HTTPStatus(status).phrase} for status in every}


def add_handlers(app: FastAPI) -> None:
    app.add_exception_handler(TriageError, _known)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _unknown)


def _known(request: Request, error: Exception) -> Response:
    error = cast(TriageError, error)
    headers = _headers(error)
    if error.status == HTTPStatus.SERVICE_UNAVAILABLE:  # it passes, and says itself what is away
        log.warning("%s %s: %s", request.method, request.url.path, _with_reason(error))
    elif error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("%s %s: %s", request.method, request.url.path, error.message, exc_info=error)
    return Answer(error.as_dict(), error.status, headers)


def _with_reason(error: TriageError) -> str:
    """-> what it tells, and what the system told it, in one line."""
    reason = str(getattr(error.__cause__, "orig", None) or error.__cause__ or "").strip().split("\n")[0]
    return f"{error.message} ({reason})" if reason else error.message


def _headers(error: TriageError) -> dict[str, str]:
    match error.status:
        case HTTPStatus.SERVICE_UNAVAILABLE:
            return {"Retry-After": RETRY_AFTER}
        case HTTPStatus.TOO_MANY_REQUESTS:
            return {"Retry-After": str(error.detail["retry_after"])}
        case HTTPStatus.UNAUTHORIZED:
            return {"WWW-Authenticate": "Bearer"}
    return {}


def _http(_: Request, error: Exception) -> Response:
    error = cast(HTTPException, error)
    status = HTTPStatus(error.status_code)
    return _answer(status, status.phrase.lower().replace(" ", "_"), str(error.detail), dict(error.headers or {}))


def _invalid(_: Request, error: Exception) -> Response:
    problems = [
        {"where": ".".join(map(str, found["loc"])), "problem": found["msg"].removeprefix("Value error, ")}
        for found in cast(RequestValidationError, error).errors()
    ]
    message = "; ".join(f"{problem['where']}: {problem['problem']}" for problem in problems)
    return Answer(
        {"error": {"code": "invalid_request", "message": message, "detail": {"problems": problems}}},
        HTTPStatus.UNPROCESSABLE_ENTITY,
    )


def _gone(request: Request, _: Exception) -> Response:
    log.info("%s %s: the sender went away", request.method, request.url.path)
    return _answer(HTTPStatus.BAD_REQUEST, "sender_went_away", "the body is incomplete")


def _unknown(_: Request, __: Exception) -> Response:
    # The web server logs the traceback.
    return _answer(HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", "internal error; see the service's log")


def _answer(status: HTTPStatus, code: str, message: str, headers: dict[str, str] | None = None) -> Response:
    return Answer({"error": {"code": code, "message": message, "detail": {}}}, status, headers)
