"""Points in time as outsiders read them."""

from __future__ import annotations

from datetime import datetime


def iso(moment: datetime | None) -> str | None:
    """-> ISO 8601 with milliseconds and Z; `moment` is in UTC."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z") if moment else None
