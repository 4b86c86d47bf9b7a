"""`/incidents.csv` and `/incidents.json`: all incidents that match the list's filters, sent as a stream."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from fastapi import APIRouter, Request, Response
from starlette.responses import StreamingResponse

from torchtriage.domain.incident import Incident
from torchtriage.services.incidents import every_incident
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.pages.csv_export import csv_answer, file_headers, pieces
from torchtriage.web.pages.incidents import asked_filters, filter_of

router = APIRouter()


@router.get("/incidents.csv")
def as_csv(request: Request, service: ServiceDep) -> Response:
    found = every_incident(service, filter_of(asked_filters(request)))
    return csv_answer("incidents", _rows(found, service.settings.base_url))


@router.get("/incidents.json")
def as_json(request: Request, service: ServiceDep) -> Response:
    """Returns them in the form of the API's lists."""
    found = every_incident(service, filter_of(asked_filters(request)))
    text = pieces(_items(found, service.settings.base_url))
    return StreamingResponse(text, media_type="application/json", headers=file_headers("incidents.json"))


def _items(found: Iterable[Incident], base_url: str) -> Iterator[str]:
    yield '{"items":['
    for at, item in enumerate(found):
        yield "," * bool(at) + json.dumps(item.as_dict(base_url), ensure_ascii=False, separators=(",", ":"))
    yield '],"next":null}'


_COLUMNS = ("id", "received_at", "state", "outcome", "entry", "title", "rank", "host", "job_id", "job_name", "cluster",
            "user", "group", "gpu_hours_lost", "url")  # fmt: skip


def _rows(items: Iterable[Incident], base_url: str) -> Iterator[list[object]]:
    yield list(_COLUMNS)
    for item in items:
        values = item.as_dict(base_url)
        verdict, group = values["verdict"] or {}, values["group"] or {}
        root = verdict.get("root_cause") or {}
        # Parts of an incident have names in common (its own id and its group's), so later ones win.
        known = values["job"] | root | values | {"outcome": verdict.get("outcome"), "group": group.get("id")}
        yield [known.get(name) for name in _COLUMNS]
