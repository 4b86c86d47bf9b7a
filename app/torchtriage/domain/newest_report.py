"""The newest report from each kind of sender."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Report:
    """An incident's id, and when it was received."""

    incident: str
    at: datetime
