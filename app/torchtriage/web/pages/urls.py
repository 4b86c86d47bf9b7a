"""Reads values from the URL of a page and builds URLs."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from urllib.parse import urlencode, urlsplit

from fastapi import Request

MAX_LENGTH = 300  # characters of a value


def value(request: Request, name: str) -> str:
    """Returns a query parameter, without characters that are not printable."""
    asked = request.query_params.get(name, "")[:MAX_LENGTH]
    return "".join(char for char in asked if char.isprintable()).strip()


def address(path: str, asked: Mapping[str, object]) -> str:
    """Returns the path with these query parameters. Empty values are left out."""
    kept = {name: given for name, given in asked.items() if given not in ("", None)}
    return f"{path}?{urlencode(kept)}" if kept else path


def moment(text: str, end: bool = False) -> datetime | None:
    """Parses `2026-05-01` or another ISO 8601 time into UTC. With `end`, a day gives the start of the next day. Returns
    None if it is neither."""
    try:
        found = datetime.fromisoformat(text)
        found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        return found + timedelta(days=1) if end and len(text) == len("2026-05-01") else found
    except (ValueError, OverflowError):
        return None


def days_of(text: str) -> tuple[str, str] | None:
    """Returns the first and last day of a day, `2026-05-01`, or a month, `2026-05`. Returns None if it is neither."""
    if day(text) is not None:
        return text, text
    first = day(f"{text}-01")
    return (first.isoformat(), f"{text}-{monthrange(first.year, first.month)[1]:02}") if first else None


def day(text: str) -> date | None:
    """Parses a day such as `2026-05-01`. Returns None if it is not a day, or outside the years 1971 to 8999."""
    try:
        found = date.fromisoformat(text)
    except ValueError:
        return None
    return found if 1970 < found.year < 9000 else None


def inside(address: str) -> str:
    """Returns the URL if it is on this service, else `/`, so that a form cannot redirect to another site."""
    parts = urlsplit(address)
    inside = not parts.scheme and not parts.netloc and address.startswith("/") and "\\" not in address
    return address if inside and not address.startswith("//") else "/"
