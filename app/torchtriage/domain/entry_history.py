"""What was recorded about an entry here: how often and when it occurred, and what people said about it."""

from __future__ import annotations

from dataclasses import dataclass

from torchtriage.domain.group import Group
from torchtriage.domain.incident import Feedback, Incident
from torchtriage.domain.stats import Precision


@dataclass(frozen=True, slots=True)
class EntryHistory:
    """Incidents whose verdict names an entry: the total, the counts for each of the last days up to today (UTC), the
    latest incidents and their groups. `notes` are comments of people on these verdicts, by incident, newest first."""

    count: int
    by_day: tuple[int, ...]
    incidents: tuple[Incident, ...]
    groups: tuple[Group, ...]
    precision: Precision
    notes: tuple[tuple[str, Feedback], ...]
