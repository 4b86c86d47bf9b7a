"""`/hosts` and `/hosts/{host}`: what failed first on which host, over all jobs, and whether the host was the cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import partial

from fastapi import APIRouter, Request, Response

from torchtriage.answer.localized_verdict import title_of
from torchtriage.domain.dashboard import Chart
from torchtriage.domain.entry import Entry, KnowledgeBase
from torchtriage.domain.incident import IncidentFilter
from torchtriage.domain.incident_summary import IncidentSummary
from torchtriage.domain.json_form import fields_form
from torchtriage.domain.stats import HostRecord, StatsFilter, UnlikelyHost
from torchtriage.services import stats
from torchtriage.services.dashboard import cluster_names, unlikely_hosts
from torchtriage.services.drain_commands import commands
from torchtriage.services.incidents import list_summaries
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.pages.charts import Drawn, drawn
from torchtriage.web.pages.csv_export import csv_answer
from torchtriage.web.pages.date_range import Asked, asked_range
from torchtriage.web.pages.groups import DAYS, Choice, last_days
from torchtriage.web.pages.language import language
from torchtriage.web.pages.list_items import IncidentItem, incident_items
from torchtriage.web.pages.rendering import render
from torchtriage.web.pages.urls import address, value

router = APIRouter()
_MAX_COUNT = 200
_RECENT = 25
_CAUSES = 2


@dataclass(frozen=True, slots=True)
class HostsPage:
    """`full`: there may be more hosts than are shown. `latest`: causes and jobs are based on this many failures per
    host, or None if on all. `causes` are the most frequent causes per host. `unlikely`: hosts that fail more often than
    chance allows, of the `compared` hosts, by name. `titles` are the titles of entries in the reader's language."""

    items: tuple[HostRecord, ...]
    causes: dict[str, list[tuple[str, int]]]
    full: bool
    latest: int | None
    unlikely: dict[str, UnlikelyHost]
    compared: int
    titles: dict[str, str]
    ranges: tuple[Choice, ...]
    clusters: tuple[str, ...]
    cluster: str
    name: str
    since: str
    until: str
    csv: str
    json: str


@dataclass(frozen=True, slots=True)
class HostPage:
    """One host over all time, and its latest incidents. `older` and `newer` are URLs. `trend` covers the last `days`
    days. `unlikely` is set if the host failed more often than chance allows in these days, compared with `compared`
    hosts."""

    record: HostRecord
    trend: Drawn
    days: int
    unlikely: UnlikelyHost | None
    compared: int
    titles: dict[str, str]
    drain: dict[str, str]
    incidents: tuple[IncidentItem, ...]
    older: str | None
    newer: str | None


@router.get("/hosts")
def hosts(request: Request, service: ServiceDep) -> Response:
    asked, wanted = _asked(request)
    found = stats.hosts(service, wanted, _MAX_COUNT)
    unlikely, compared = unlikely_hosts(service, asked.range, wanted.cluster)
    kept = {"cluster": wanted.cluster or "", "host": wanted.host or ""}
    page = HostsPage(
        items=tuple(found),
        causes={one.host: _causes(one, service.knowledge)[:_CAUSES] for one in found},
        full=len(found) == _MAX_COUNT,
        latest=max((one.looked_at for one in found if one.looked_at < one.count), default=None),
        unlikely={one.failures.host: one for one in unlikely},
        compared=compared,
        titles=_titles(request, service, found),
        ranges=asked.choices("/hosts", kept),
        clusters=tuple(cluster_names(service)),
        cluster=kept["cluster"],
        name=kept["host"],
        since=asked.range.first.isoformat(),
        until=asked.range.last.isoformat(),
        csv=address("/hosts.csv", asked.query | kept),
        json=address("/api/v1/hosts", _times(wanted) | kept | {"limit": str(_MAX_COUNT)}),
    )
    return render(request, "hosts.html", page)


@router.get("/hosts.csv")
def as_csv(request: Request, service: ServiceDep) -> Response:
    """Returns what the page shows for the same query."""
    return csv_answer("hosts", _rows(stats.hosts(service, _asked(request)[1], _MAX_COUNT)))


@router.get("/hosts/{host}")
def host(request: Request, service: ServiceDep, host: str) -> Response:
    record, days = stats.host(service, host), last_days(DAYS)
    unlikely, compared = unlikely_hosts(service, asked_range(request).range, None)
    within = list_summaries(service, IncidentFilter(host=host), _RECENT, value(request, "cursor") or None)
    page = HostPage(
        record=record,
        trend=drawn(Chart(days, stats.host_days(service, host, days)), partial(_of_day, host)),
        days=DAYS,
        unlikely=next((one for one in unlikely if one.failures.host == host), None),
        compared=compared,
        titles=_titles(request, service, [record]),
        drain=commands([host], _scheduler(within.items)) if record.hardware else {},
        incidents=incident_items(within.items, service.knowledge, language(request)),
        older=address("", {"cursor": within.next}) if within.next else None,
        newer=address("", {"cursor": within.previous}) if within.previous else None,
    )
    return render(request, "host.html", page)


def _scheduler(incidents: Iterable[IncidentSummary]) -> str | None:
    """Returns the scheduler of the latest job for which it is known."""
    return next((one.job.scheduler for one in incidents if one.job.scheduler), None)


def _causes(record: HostRecord, knowledge: KnowledgeBase) -> list[tuple[str, int]]:
    """Returns the causes and how often each occurred on the host. Faults of the host itself come first."""
    own = {entry for entry in record.entries if _is_host_fault(knowledge.entries.get(entry))}
    return sorted(record.entries.items(), key=lambda cause: cause[0] not in own)


def _is_host_fault(entry: Entry | None) -> bool:
    return entry is not None and entry.action.exclude_hosts


def _of_day(host: str, day: str, _: str) -> str:
    return address("/incidents", {"host": host, "day": day})


def _asked(request: Request) -> tuple[Asked, StatsFilter]:
    asked = asked_range(request)
    since = datetime.combine(asked.range.first, time(), UTC)
    until = datetime.combine(asked.range.last + timedelta(days=1), time(), UTC)
    cluster, name = value(request, "cluster"), value(request, "host")
    return asked, StatsFilter(since, until, cluster or None, name or None)


def _times(wanted: StatsFilter) -> dict[str, str]:
    times = {"since": wanted.since, "until": wanted.until}
    return {name: at.isoformat() for name, at in times.items() if at is not None}


def _titles(request: Request, service: ServiceDep, records: list[HostRecord]) -> dict[str, str]:
    entries = {entry for record in records for entry in record.entries}
    lang = language(request)
    return {entry: title_of(entry, service.knowledge, lang) or entry for entry in entries}


def _rows(records: list[HostRecord]) -> Iterator[list[object]]:
    names = ("host", "count", "hardware", "jobs", "first_seen", "last_seen", "gpu_hours_lost")
    yield [*names, "entries"]
    for record in records:
        values = fields_form(record)
        entries = "; ".join(f"{entry} {count}" for entry, count in record.entries.items())
        yield [*(values[name] for name in names), entries]
