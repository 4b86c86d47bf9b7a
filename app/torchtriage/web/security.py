"""Protects browsers against other sites and malicious text: security headers, and checks of which requests may change
data."""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from torchtriage.errors import BadInput
from torchtriage.lazy_regex import lazy_regex

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_RAW = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
_ADDRESSES = lazy_regex(
    r"(?:localhost|(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3})(?::\d{1,5})?",
    re.ASCII,
)
_READING = frozenset({"GET", "HEAD", "OPTIONS"})


class CrossSite(BadInput):
    """A page of another site made a browser send this request."""

    status = 403
    code = "cross_site"


class SecurityHeaders:
    """Middleware that adds security headers to every answer that does not set them itself."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(header for header in _RAW if header[0] not in given)]
            await send(message)

        await self._app(scope, receive, sending if scope["type"] == "http" else send)


def refuse_foreign_name(request: Request, public_url: str) -> None:
    """Raises CrossSite if the Host header is the name of another site (DNS rebinding). A page could make its own name
    resolve to this service, to read what is open to this machine only. IP addresses, names without a dot and the name
    in the settings are allowed."""
    if _ADDRESSES.fullmatch(request.headers.get("host", "")):
        return  # most programs use such a host; parsing the whole URL takes longer
    name = request.url.hostname or ""
    if "." not in name or name.endswith(".localhost") or name == urlsplit(public_url).hostname:
        return
    try:
        ip_address(name)
    except ValueError:
        raise CrossSite(f"{name[:100]} is not this service's host name; if it is, set TRIAGE_PUBLIC_URL") from None


async def refuse_cross_site(request: Request) -> None:
    """Raises CrossSite if a page of another site requests a change. Allows reading, and programs, which send neither
    header."""
    if request.method in _READING:
        return
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    if site is not None:
        foreign = site not in ("same-origin", "none")
    else:
        foreign = origin is not None and urlsplit(origin).netloc != request.headers.get("host")
    if foreign:
        raise CrossSite("cross-site request refused")
