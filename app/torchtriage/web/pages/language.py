"""Selects the language of a page, `en` or `zh`."""

from __future__ import annotations

from typing import cast

from fastapi import Request, Response

from torchtriage.domain.entry import Language

COOKIE = "lang"
_YEAR = 365 * 24 * 3600
_LANGUAGES = ("en", "zh")


def language(request: Request) -> Language:
    """Returns the language in the URL (`?lang=`), else the one chosen before, else the one that the browser prefers."""
    for asked in (request.query_params.get("lang"), request.cookies.get(COOKIE)):
        if asked in _LANGUAGES:
            return cast(Language, asked)
    return _preferred(request.headers.get("accept-language", ""))


def remember(request: Request, response: Response) -> None:
    """Sets the cookie if the URL selects a language."""
    asked = request.query_params.get("lang")
    if asked in _LANGUAGES:
        secure = request.url.scheme == "https"
        response.set_cookie(COOKIE, asked, max_age=_YEAR, httponly=True, samesite="lax", secure=secure)


def _preferred(header: str) -> Language:
    best: Language = "en"
    weight = 0.0
    for part in header[:1000].split(","):
        tag, _, parameter = part.strip().partition(";")
        known = tag.strip().lower().split("-")[0]
        if known in _LANGUAGES and (weighs := _weight(parameter)) > weight:
            best, weight = cast(Language, known), weighs
    return best


def _weight(parameter: str) -> float:
    name, _, value = parameter.strip().partition("=")
    try:
        return float(value) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0
