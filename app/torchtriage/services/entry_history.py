"""Reads how often an entry was seen in this service."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from torchtriage.domain.entry_history import EntryHistory
from torchtriage.domain.group import GroupFilter, GroupOrder
from torchtriage.domain.incident import IncidentFilter
from torchtriage.domain.stats import Precision
from torchtriage.services.service import Service
from torchtriage.storage import daily_counts, feedback, groups, incidents

_INCIDENTS, _GROUPS, _NOTES = 6, 5, 8


def entry_history(service: Service, entry: str, days: int) -> EntryHistory:
    """Returns the history of an entry, with daily counts for the last `days` days."""
    today = datetime.now(UTC).date()
    every = [today - timedelta(days=back) for back in reversed(range(days))]
    with service.database.reading() as session:
        count, daily = daily_counts.of_entry(session, entry, every[0])
        right, wrong = feedback.of_entry(session, entry)
        return EntryHistory(
            count=count,
            by_day=tuple(daily.get(day.isoformat(), 0) for day in every),
            incidents=incidents.listed(session, IncidentFilter(entry=entry), _INCIDENTS, None).items,
            groups=groups.listed(session, GroupFilter(entry=entry, sort=GroupOrder.COUNT), _GROUPS, None).items,
            precision=Precision(entry, right, wrong),
            notes=tuple(feedback.notes_of_entry(session, entry, _NOTES)),
        )
