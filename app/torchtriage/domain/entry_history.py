"""What was seen of an entry here: how often, how lately, and what people said about it."""

from __future__ import annotations

from dataclasses import dataclass

from torchtriage.domain.group import Group
from torchtriage.domain.incident import Feedback, Incident
from torchtriage.domain.stats import Precision


@dataclass(frozen=True, slots=True)
class EntryHistory:
    """Incidents whose verdict names an entry: all of them counted, the last days one by one until today (UTC), the
    latest ones and their groups. `notes` are what people wrote to verdicts that named it, by incident, newest first.
    """

    count: int
    by_day: tuple[int, ...]
    incidents: tuple[Incident, ...]
    groups: tuple[Group, ...]
    precision: Precision
    notes: tuple[tuple[str, Feedback], ...]
