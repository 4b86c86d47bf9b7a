"""Reads from the URL which range of days (UTC) a page shows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from fastapi import Request

from torchtriage.domain.dashboard import Range
from torchtriage.web.pages.groups import Choice
from torchtriage.web.pages.urls import address, day, value

DAYS = (7, 30, 90, 365)
_USUAL = 30
_MAX_DAYS = 1100  # days: a chart by months of three years


@dataclass(frozen=True, slots=True)
class Asked:
    """The requested range: a number of `days` until today, or a first and a last day."""

    range: Range
    query: dict[str, str]
    days: int | None

    def choices(self, path: str, kept: dict[str, str]) -> tuple[Choice, ...]:
        return tuple(Choice(str(days), address(path, {"days": str(days)} | kept), self.days == days) for days in DAYS)


def asked_range(request: Request) -> Asked:
    """Returns the days from `since` to `until`, both included, else the last `days` days, else the default range."""
    today = datetime.now(UTC).date()
    since, until = day(value(request, "since")), day(value(request, "until"))
    if since is not None or until is not None:
        last = until or max(today, since or today)
        first = min(since or last - timedelta(days=_USUAL - 1), last)
        first = max(first, last - timedelta(days=_MAX_DAYS))
        query = {"since": first.isoformat(), "until": last.isoformat()}
        return Asked(Range(first, last), query, None)
    given = value(request, "days")
    days = int(given) if given in map(str, DAYS) else _USUAL
    return Asked(Range(today - timedelta(days=days - 1), today), {"days": str(days)}, days)
