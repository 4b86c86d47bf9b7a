"""Points in time as outsiders read them."""

from __future__ import annotations

import re
from datetime import datetime


def iso(moment: datetime | None) -> str | None:
    """-> ISO 8601 with milliseconds and Z; `moment` is in UTC."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z") if moment else None


def log_time(time: str | None) -> str | None:
    """-> a time that a log tells, for people: to the second, in the zone that the log is written in."""
    return re.sub(r"^(?:--)?((?:\d{4}-)?\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?", r"\1 \2", time) if time else None
