"""What filters of the list of incidents can be set to, with counts: the filters that are set in, values out."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from torchtriage.domain.incident import IncidentFilter
from torchtriage.domain.verdict import FAILED
from torchtriage.services.service import Service
from torchtriage.storage import filter_values
from torchtriage.storage.incident_list import RETRIES

LOOKED_AT = 2000  # incidents
_SHOWN = 50  # values of a filter
FILTERS = ("outcome", "entry", "host", "user", "cluster", "queue", "image", "owner", "retry", "label", "state")


@dataclass(frozen=True, slots=True)
class FilterValues:
    """For each filter its values and how many of the latest `looked_at` incidents that fit all other filters have them,
    the most often first."""

    looked_at: int
    counts: dict[str, dict[str, int]]


def values(service: Service, wanted: IncidentFilter, asked: dict[str, str]) -> FilterValues:
    """-> the values of FILTERS among the latest incidents of the time, group and words of `wanted`; of each filter
    those that come where all others that are `asked` for stay set."""
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
