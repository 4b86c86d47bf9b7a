"""Views: filters of the incident list that somebody saved under a name."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class View:
    """A saved view, which everybody can use. `query` is the part of the list's URL after the question mark."""

    id: str
    name: str
    query: str
    by: str
    at: datetime
