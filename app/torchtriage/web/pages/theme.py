"""`/theme`: the light or dark theme, or that of the reader's system, stored in a cookie."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from starlette.responses import RedirectResponse

from torchtriage.web.pages.urls import inside

router = APIRouter()
THEMES = ("system", "light", "dark")
_COOKIE = "theme"
_YEAR = 365 * 24 * 3600


@router.post("/theme")
def choose(
    request: Request,
    theme: Annotated[str, Form(max_length=20)] = "",
    back: Annotated[str, Form(max_length=4000)] = "/",
) -> Response:
    """Stores the theme in a cookie and redirects back to the page. An invalid theme changes nothing."""
    answer = RedirectResponse(inside(back), HTTPStatus.SEE_OTHER)
    if theme in THEMES:
        secure = request.url.scheme == "https"
        answer.set_cookie(_COOKIE, theme, max_age=_YEAR, httponly=True, samesite="lax", secure=secure)
    return answer


def theme_of(request: Request) -> str:
    """Returns one of THEMES; that of the system if nothing was chosen."""
    chosen = request.cookies.get(_COOKIE, "")
    return chosen if chosen in THEMES else THEMES[0]


def address_of(request: Request) -> str:
    """Returns the URL of the current page, to come back to; `/` if the page is the answer to a form."""
    if request.method not in ("GET", "HEAD"):
        return "/"
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")
