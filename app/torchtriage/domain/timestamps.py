"""Times in the forms that the API and pages show."""

from __future__ import annotations

import re
from datetime import datetime


def iso(moment: datetime | None) -> str | None:
    """Returns the time in ISO 8601 with milliseconds and Z. `moment` is in UTC."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z") if moment else None


def log_time(time: str | None) -> str | None:
    """Returns a time from a log in a form for people: to the second, in the time zone of the log."""
    return re.sub(r"^(?:--)?((?:\d{4}-)?\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?", r"\1 \2", time) if time else None
