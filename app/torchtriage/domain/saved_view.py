"""Views: filters of the list of incidents that somebody saved under a name."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class View:
    """For everyone; `query` is what follows the question mark of the list's address."""

    id: str
    name: str
    query: str
    by: str
    at: datetime
