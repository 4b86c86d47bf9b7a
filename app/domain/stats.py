"""Counts over incidents, as outsiders read them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from app.domain.moment import iso

Bucket = Literal["hour", "day"]


@dataclass(frozen=True, slots=True)
class StatsFilter:
    """Which incidents to count; None leaves a property open."""

    since: datetime | None = None
    until: datetime | None = None
    cluster: str | None = None


@dataclass(frozen=True, slots=True)
class Stat:
    """How many incidents of one value were received from `at` (ISO 8601, UTC) on, and what they cost."""

    at: str
    value: str | None
    count: int
    gpu_hours_lost: float | None

    def as_dict(self) -> dict[str, Any]:
        return {"at": self.at, "value": self.value, "count": self.count, "gpu_hours_lost": self.gpu_hours_lost}


@dataclass(frozen=True, slots=True)
class HostRecord:
    """What failed first on one host, over all jobs; `hardware` counts what the host itself is to blame for."""

    host: str
    count: int
    hardware: int
    jobs: int
    first_seen: datetime
    last_seen: datetime
    gpu_hours_lost: float | None
    entries: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "count": self.count,
            "hardware": self.hardware,
            "jobs": self.jobs,
            "first_seen": iso(self.first_seen),
            "last_seen": iso(self.last_seen),
            "gpu_hours_lost": self.gpu_hours_lost,
            "entries": self.entries,
        }
