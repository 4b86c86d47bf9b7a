"""`/incidents`: the list, with filters that live in the address, saved views of it, and what it shows as CSV."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Form, Request, Response
from starlette.responses import RedirectResponse

from app.domain.incident import Incident, IncidentFilter, State
from app.domain.view import View
from app.services.incidents import list_incidents
from app.services.views import list_views, remove_view, save_view
from app.web.access import Writer
from app.web.deps import ServiceDep
from app.web.pages.addresses import address, moment, value
from app.web.pages.items import IncidentItem, incident_items
from app.web.pages.language import language
from app.web.pages.rendering import render
from app.web.pages.tables import csv_answer

router = APIRouter()
FILTERS = ("q", "outcome", "state", "entry", "host", "user", "cluster", "since", "until", "group")
_STATES = tuple(state.value for state in State)
_OUTCOMES = ("explained", "unexplained", "healthy")
_AT_ONCE = 50
_SAID = ("saved", "removed", "deleted", "right", "wrong", "nothing")  # what can have been done before


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter that is set, and the address without it; `coded` where the value is a word of ours."""

    name: str
    value: str
    coded: bool
    without: str


@dataclass(frozen=True, slots=True)
class ViewLink:
    """A saved view, and whether it is what is shown."""

    view: View
    address: str
    here: bool


@dataclass(frozen=True, slots=True)
class Done:
    """What was done just before; `view` and `query` are what a view that was removed was, so that it can be undone."""

    what: str
    count: str
    view: str
    query: str


@dataclass(frozen=True, slots=True)
class IncidentsPage:
    """`older`, `newer` and `newest` are addresses, None where there is nothing more; `query` is what is asked for."""

    items: tuple[IncidentItem, ...]
    asked: dict[str, str]
    chips: tuple[Chip, ...]
    views: tuple[ViewLink, ...]
    outcomes: tuple[str, ...]
    states: tuple[str, ...]
    query: str
    here: str
    older: str | None
    newer: str | None
    newest: str | None
    csv: str
    json: str
    done: Done | None


@router.get("/incidents")
def incidents(request: Request, service: ServiceDep) -> Response:
    asked = _asked(request)
    cursor = value(request, "cursor")
    found = list_incidents(service, _filter(asked), _AT_ONCE, cursor or None)
    query = urlencode(asked)
    here = asked | ({"cursor": cursor} if cursor else {})
    page = IncidentsPage(
        items=incident_items(found.items, service.knowledge, language(request)),
        asked={name: asked.get(name, "") for name in FILTERS},
        chips=tuple(_chip(asked, name) for name in asked),
        views=tuple(_link(view, query) for view in list_views(service)),
        outcomes=_OUTCOMES,
        states=_STATES,
        query=query,
        here=urlencode(here),
        older=address("/incidents", asked | {"cursor": found.next}) if found.next else None,
        newer=address("/incidents", asked | {"cursor": found.previous}) if found.previous else None,
        newest=address("/incidents", asked) if cursor else None,
        csv=address("/incidents.csv", here),
        json=address("/api/v1/incidents", _for_api(asked) | ({"cursor": cursor} if cursor else {})),
        done=_done(request),
    )
    return render(request, "incidents.html", page)


@router.get("/incidents.csv")
def as_csv(request: Request, service: ServiceDep) -> Response:
    """What the list of the same address shows."""
    cursor = value(request, "cursor") or None
    found = list_incidents(service, _filter(_asked(request)), _AT_ONCE, cursor)
    return csv_answer("incidents", _rows(found.items, service.settings.base_url))


@router.post("/incidents/views")
def save(
    service: ServiceDep, caller: Writer, name: Annotated[str, Form()] = "", query: Annotated[str, Form()] = ""
) -> Response:
    """Saves the filters that are set under a name."""
    kept = urlencode([(key, given) for key, given in parse_qsl(query) if key in FILTERS])
    save_view(service, name, kept, caller.name)
    return _back(kept, said="saved")


@router.post("/incidents/views/{view_id}/remove")
def remove(service: ServiceDep, caller: Writer, view_id: str) -> Response:
    """Takes a view away; the list then offers to undo it."""
    view = remove_view(service, view_id, caller.name)
    return _back(view.query, said="removed", view=view.name)


def _back(query: str, **said: object) -> Response:
    return RedirectResponse(address("/incidents", dict(parse_qsl(query)) | said), HTTPStatus.SEE_OTHER)


def _asked(request: Request) -> dict[str, str]:
    return {name: given for name in FILTERS if (given := value(request, name))}


def _done(request: Request) -> Done | None:
    what, count = value(request, "said"), value(request, "n")
    if what not in _SAID:
        return None
    query = urlencode(_asked(request))
    return Done(what, count if count.isdecimal() else "1", value(request, "view"), query)


def _link(view: View, query: str) -> ViewLink:
    return ViewLink(view, address("/incidents", dict(parse_qsl(view.query))), view.query == query)


def _chip(asked: dict[str, str], name: str) -> Chip:
    ours = {"outcome": _OUTCOMES, "state": _STATES}.get(name, ())
    kept = {key: given for key, given in asked.items() if key != name}
    return Chip(name, asked[name], asked[name] in ours, address("/incidents", kept))


def _filter(asked: dict[str, str]) -> IncidentFilter:
    values = dict(asked)
    state = values.pop("state", None)
    since, until = moment(values.pop("since", "")), moment(values.pop("until", ""), end=True)
    known = IncidentFilter(**values, state=State(state) if state in _STATES else None)  # type: ignore[arg-type]
    return replace(known, since=since, until=until)


def _for_api(asked: dict[str, str]) -> dict[str, str]:
    """-> the same filters as the API takes them: it has points in time, where the page has days."""
    wanted = _filter(asked)
    times = {"since": wanted.since, "until": wanted.until}
    return {name: given for name, given in asked.items() if name not in times} | {
        name: at.isoformat() for name, at in times.items() if at is not None
    }


def _rows(items: tuple[Incident, ...], base_url: str) -> Iterator[list[object]]:
    yield ["id", "received_at", "state", "outcome", "entry", "title", "rank", "host", "job_id", "job_name", "cluster",
           "user", "group", "gpu_hours_lost", "url"]  # fmt: skip
    for item in items:
        told = item.as_dict(base_url)
        verdict, job, group = told["verdict"] or {}, told["job"], told["group"] or {}
        root = verdict.get("root_cause") or {}
        yield [
            *(
                item.id,
                told["received_at"],
                told["state"],
                verdict.get("outcome"),
                root.get("entry"),
                root.get("title"),
            ),
            *(root.get(name) for name in ("rank", "host")),
            *(job.get(name) for name in ("job_id", "job_name", "cluster", "user")),
            *(group.get("id"), told["gpu_hours_lost"], told["url"]),
        ]
