"""Links from an incident to its run in other systems: logs, metrics and trackers, for the run's time and host."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from urllib.parse import quote
from zoneinfo import ZoneInfo

from torchtriage.domain.entry import Language
from torchtriage.domain.incident import Incident
from torchtriage.lazy_regex import lazy_regex
from torchtriage.settings.links import LinkTemplate, LinkTemplates, fill

_PAGE = "_run_url"  # the names of facts that are URLs of the run in trackers end like this
_BEFORE, _AFTER = timedelta(minutes=5), timedelta(minutes=5)  # added around the run's time
_UNKNOWN = timedelta(hours=6)  # duration of a run whose start is unknown
_MAX_COUNT = 3  # maximum number of links to trackers
# The values come from the log. None of their characters may end a string in a query or in a URL.
_HARMLESS = lazy_regex(r"[A-Za-z0-9_.:@/+, -]{1,200}")
_WEB = lazy_regex(r"https?://[^\s\"'<>\\]{3,500}")


@dataclass(frozen=True, slots=True)
class Link:
    """`name` is None if the URL comes from the log; then the whole URL is shown."""

    url: str
    name: str | None = None


def links_of(templates: LinkTemplates, incident: Incident, lang: Language) -> tuple[Link, ...]:
    """Returns the links of which all slots can be filled, then the run's pages in trackers."""
    facts = incident.verdict.facts if incident.verdict else ()
    known_facts = {fact.name: str(fact.value) for fact in reversed(facts)}
    values = {
        name: value
        for name, value in (known_facts | _values(templates, incident)).items()
        if _HARMLESS.fullmatch(value)
    }
    found = [
        Link(_url(template, values), template.name_zh if lang == "zh" else template.name)
        for template in templates.links
        if template.needs <= values.keys()
    ]
    pages = dict.fromkeys(str(fact.value) for fact in facts if fact.name.endswith(_PAGE))
    return (*found, *(Link(page) for page in list(pages)[:_MAX_COUNT] if _WEB.fullmatch(page)))


def _values(templates: LinkTemplates, incident: Incident) -> dict[str, str]:
    """Returns the values of slots, other than the facts of the log."""
    job, root, run = incident.job, incident.root_cause, incident.verdict.run if incident.verdict else None
    host = root.host if root else None
    if host is None and run and len(run.hosts) == 1:
        host = run.hosts[0]
    began, ended = _range(templates, incident)
    rank = root.rank if root else None
    known = {
        "host": host,
        "rank": None if rank is None else str(rank),
        "job_id": job.job_id,
        "job_name": job.job_name,
        "cluster": job.cluster,
        "user": job.user,
        "queue": job.queue,
        "incident": incident.id,
        "from": f"{began:%Y-%m-%dT%H:%M:%SZ}",
        "to": f"{ended:%Y-%m-%dT%H:%M:%SZ}",
        "from_s": str(int(began.timestamp())),
        "to_s": str(int(ended.timestamp())),
        "from_ms": str(int(began.timestamp()) * 1000),
        "to_ms": str(int(ended.timestamp()) * 1000),
    }
    labels = {f"label_{name}": value for name, value in job.labels.items()}
    return labels | {name: value for name, value in known.items() if value}


def _range(templates: LinkTemplates, incident: Incident) -> tuple[datetime, datetime]:
    """Returns the start and the end of the run in UTC, with a margin: as the sender gave them, or else as the log
    shows."""
    run, zone = incident.verdict.run if incident.verdict else None, ZoneInfo(templates.timezone)
    ended = _moment(incident.job.ended_at, UTC) or _moment(run.ended if run else None, zone) or incident.received_at
    began = _moment(incident.job.started_at, UTC) or _moment(run.started if run else None, zone)
    if began is None or began > ended:
        began = ended - _UNKNOWN
    return began - _BEFORE, ended + _AFTER


def _moment(text: str | None, zone: tzinfo) -> datetime | None:
    """Parses a date with time and converts it to UTC. Returns None if that fails."""
    try:
        found = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=zone)).astimezone(UTC)


def _url(template: LinkTemplate, values: dict[str, str]) -> str:
    if template.url:
        return fill(template.url, {name: quote(value, safe="") for name, value in values.items()})
    source = {"type": template.type, "uid": template.datasource}
    query = {"refId": "A", "datasource": source, "expr": fill(template.query, values)}
    times = {"from": values["from_ms"], "to": values["to_ms"]}
    panes = {"run": {"datasource": template.datasource, "queries": [query], "range": times}}
    encoded = quote(json.dumps(panes, ensure_ascii=False, separators=(",", ":")), safe="")
    return f"{template.grafana.rstrip('/')}/explore?schemaVersion=1&panes={encoded}&orgId=1"
