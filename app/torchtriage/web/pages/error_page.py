"""Shows errors as pages to people in a browser. Programs still get JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast
from urllib.parse import urlencode

from fastapi import FastAPI, Request, Response
from starlette.responses import RedirectResponse
from structlog.contextvars import get_contextvars

from torchtriage.errors import TriageError
from torchtriage.web.pages.rendering import render

_FOR_PROGRAMS = ("/api/", "/slack/", "/static/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/client.py")
_Handler = Callable[[Request, Exception], Response]


@dataclass(frozen=True, slots=True)
class ErrorPage:
    """`message` is the sentence of the error, or None if the status says enough. For an unexpected error, `logged` is
    the id under which the service's log has the details."""

    status: int
    message: str | None
    logged: str | None


def answer_people(app: FastAPI) -> None:
    """Wraps the application's error handlers, so that browsers get a page."""
    for kind, handler in app.exception_handlers.items():
        app.exception_handlers[kind] = _wrapped(cast(_Handler, handler))


def wants_page(request: Request) -> bool:
    """Returns whether a person made the request, judged by its path and Accept header."""
    return not request.url.path.startswith(_FOR_PROGRAMS) and "text/html" in request.headers.get("accept", "")


def _wrapped(handler: _Handler) -> _Handler:
    def handle(request: Request, error: Exception) -> Response:
        answer = handler(request, error)
        if not wants_page(request):
            return answer
        if answer.status_code == HTTPStatus.UNAUTHORIZED:
            here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"/login?{urlencode({'next': here})}", HTTPStatus.SEE_OTHER)
        message = error.message if isinstance(error, TriageError) else None
        unforeseen = answer.status_code == HTTPStatus.INTERNAL_SERVER_ERROR
        logged = get_contextvars().get("request_id") if unforeseen else None
        page = render(request, "error.html", ErrorPage(answer.status_code, message, logged), answer.status_code)
        for name in ("retry-after", "allow"):
            if name in answer.headers:
                page.headers[name] = answer.headers[name]
        return page

    return handle
