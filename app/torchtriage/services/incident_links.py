"""Links from an incident to where else its run stands: logs, metrics and trackers, for the time and host of the run."""

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

_PAGE = "_run_url"  # so end the names of facts that are pages of the run in trackers
_BEFORE, _AFTER = timedelta(minutes=5), timedelta(minutes=5)  # what is shown around the run
_UNKNOWN = timedelta(hours=6)  # of a run that tells no beginning
_MOST = 3  # trackers
# A log says what the values are: no character of theirs may end a string of a query, or of a URL.
_HARMLESS = lazy_regex(r"[A-Za-z0-9_.:@/+, -]{1,200}")
_WEB = lazy_regex(r"https?://[^\s\"'<>\\]{3,500}")


@dataclass(frozen=True, slots=True)
class Link:
    """`name` is None where the log itself says the address, which is shown whole then."""

    url: str
    name: str | None = None


def links_of(templates: LinkTemplates, incident: Incident, lang: Language) -> tuple[Link, ...]:
    """-> the links whose places can all be filled, then the pages of the run in trackers."""
    facts = incident.verdict.facts if incident.verdict else ()
    told = {fact.name: str(fact.value) for fact in reversed(facts)}
    values = {
        name: value for name, value in (told | _values(templates, incident)).items() if _HARMLESS.fullmatch(value)
    }
    found = [
        Link(_url(template, values), template.name_zh if lang == "zh" else template.name)
        for template in templates.links
        if template.needs <= values.keys()
    ]
    pages = dict.fromkeys(str(fact.value) for fact in facts if fact.name.endswith(_PAGE))
    return (*found, *(Link(page) for page in list(pages)[:_MOST] if _WEB.fullmatch(page)))


def _values(templates: LinkTemplates, incident: Incident) -> dict[str, str]:
    """-> what the places of templates can be filled with, beside the facts of the log."""
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
    """-> when the run began and ended, in UTC and with a little around it: as its sender says, else as its log does."""
    run, zone = incident.verdict.run if incident.verdict else None, ZoneInfo(templates.timezone)
    ended = _moment(incident.job.ended_at, UTC) or _moment(run.ended if run else None, zone) or incident.received_at
    began = _moment(incident.job.started_at, UTC) or _moment(run.started if run else None, zone)
    if began is None or began > ended:
        began = ended - _UNKNOWN
    return began - _BEFORE, ended + _AFTER


def _moment(text: str | None, zone: tzinfo) -> datetime | None:
    """-> a point in time with its date, in UTC."""
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
    told = quote(json.dumps(panes, ensure_ascii=False, separators=(",", ":")), safe="")
    return f"{template.grafana.rstrip('/')}/explore?schemaVersion=1&panes={told}&orgId=1"
