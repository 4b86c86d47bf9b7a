"""Turns exceptions into HTTP answers: a status and `{"error": {"code", "message", "detail"}}`."""

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
    """The body of every answer with status 400 or above."""

    error: ErrorForm


class UnsupportedBody(BadInput):
    """The format of the body is not supported."""

    status = 415
    code = "unsupported_body"


class TooSlow(BadInput):
    """The client stopped sending, or sent too slowly."""

    status = 408
    code = "too_slow"


class Busy(TriageError):
    """The service is receiving too many other logs. A later try may succeed."""

    status = 503
    code = "busy"


class Stopping(TriageError):
    """The server stops before it can answer. Another server, or this one after its restart, can answer."""

    status = 503
    code = "stopping"

    def __init__(self) -> None:
        super().__init__("the service is shutting down; send this again")


def error_responses(*statuses: int, guarded: bool = True) -> dict[int | str, dict[str, Any]]:
    """Returns the errors that a route can give, for the OpenAPI document. Every route can give 500 and 503. A `guarded`
    route requires a token if the service uses tokens."""
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
    if error.status == HTTPStatus.SERVICE_UNAVAILABLE:  # temporary; the message names what is not available
        log.warning("%s %s: %s", request.method, request.url.path, _with_reason(error))
    elif error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("%s %s: %s", request.method, request.url.path, error.message, exc_info=error)
    return Answer(error.as_dict(), error.status, headers)


def _with_reason(error: TriageError) -> str:
    """Returns the message and its cause, in one line."""
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
    log.info("%s %s: the client disconnected", request.method, request.url.path)
    return _answer(HTTPStatus.BAD_REQUEST, "sender_went_away", "the body is incomplete")


def _unknown(_: Request, __: Exception) -> Response:
    # The server logs the traceback.
    return _answer(HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", "internal error; see the service's log")


def _answer(status: HTTPStatus, code: str, message: str, headers: dict[str, str] | None = None) -> Response:
    return Answer({"error": {"code": code, "message": message, "detail": {}}}, status, headers)
