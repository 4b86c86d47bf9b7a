"""The values that each filter of the incident list can have, with counts, given the filters that are set."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from torchtriage.domain.incident import IncidentFilter
from torchtriage.domain.verdict import FAILED
from torchtriage.services.service import Service
from torchtriage.storage import filter_values
from torchtriage.storage.incident_list import RETRIES

LOOKED_AT = 2000  # maximum incidents that are counted
_SHOWN = 50  # maximum values of a filter
FILTERS = ("outcome", "entry", "host", "user", "cluster", "queue", "image", "owner", "retry", "label", "state")


@dataclass(frozen=True, slots=True)
class FilterValues:
    """For each filter, its values with counts, most frequent first. Counted are those of the latest `looked_at`
    incidents that fit all other filters."""

    looked_at: int
    counts: dict[str, dict[str, int]]


def values(service: Service, wanted: IncidentFilter, asked: dict[str, str]) -> FilterValues:
    """Returns the values of FILTERS among the latest incidents in the time, group and search words of `wanted`. The
    values of one filter are counted with all other filters in `asked` applied."""
    within = IncidentFilter(q=wanted.q, group=wanted.group, since=wanted.since, until=wanted.until)
    with service.database.reading() as session:
        rows = filter_values.latest(session, within, LOOKED_AT)
    owners = {entry.id: entry.owner for entry in service.knowledge.entries.values()}
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        row["owner"] = {owners[entry] for entry in row["entry"] if entry in owners}
        misses = {name for name in FILTERS if name in asked and not _fits(row[name], asked[name])}
        for name in FILTERS if not misses else misses if len(misses) == 1 else ():
            counts[name].update(row[name])
    return FilterValues(len(rows), {name: dict(counts[name].most_common(_SHOWN)) for name in FILTERS})


def _fits(known: set[str], asked: str) -> bool:
    several = {"failed": FAILED, "any": RETRIES}.get(asked)
    return bool(known & set(several)) if several else asked in known
