"""What pages read from their address, and addresses made of it."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from urllib.parse import urlencode, urlsplit

from fastapi import Request

LONGEST = 300  # characters of a value


def value(request: Request, name: str) -> str:
    """-> a value of the address, without characters that no name has and Postgres refuses."""
    asked = request.query_params.get(name, "")[:LONGEST]
    return "".join(char for char in asked if char.isprintable()).strip()


def address(path: str, asked: Mapping[str, object]) -> str:
    """-> the path with what is asked for; empty values are left out."""
    kept = {name: given for name, given in asked.items() if given not in ("", None)}
    return f"{path}?{urlencode(kept)}" if kept else path


def moment(text: str, end: bool = False) -> datetime | None:
    """-> a point in time from `2026-05-01` or an ISO 8601 one, in UTC; a day's `end` is the next one's beginning. None
    where it is neither."""
    try:
        found = datetime.fromisoformat(text)
        found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        return found + timedelta(days=1) if end and len(text) == len("2026-05-01") else found
    except (ValueError, OverflowError):
        return None


def days_of(text: str) -> tuple[str, str] | None:
    """-> the first and the last day of a day, `2026-05-01`, or month, `2026-05`; None where it is neither."""
    if day(text) is not None:
        return text, text
    first = day(f"{text}-01")
    return (first.isoformat(), f"{text}-{monthrange(first.year, first.month)[1]:02}") if first else None


def day(text: str) -> date | None:
    """-> a day from `2026-05-01`; None where it is none, or one that nothing is known of."""
    try:
        found = date.fromisoformat(text)
    except ValueError:
        return None
    return found if 1970 < found.year < 9000 else None


def inside(address: str) -> str:
    """-> the address where it is one of this service, else the first page: a form must not lead to other sites."""
    parts = urlsplit(address)
    inside = not parts.scheme and not parts.netloc and address.startswith("/") and "\\" not in address
    return address if inside and not address.startswith("//") else "/"
