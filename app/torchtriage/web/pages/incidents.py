"""`/incidents`: the list, with filters that live in the address, saved views of it, and what it shows as CSV."""

from __future__ import annotations

from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Form, Request, Response
from starlette.responses import RedirectResponse

from torchtriage.domain.incident import IncidentFilter, State
from torchtriage.domain.incident_summary import IncidentSummary
from torchtriage.domain.saved_view import View
from torchtriage.domain.verdict import OUTCOMES
from torchtriage.lazy_regex import lazy_regex
from torchtriage.services.incidents import list_summaries
from torchtriage.services.saved_views import list_views, remove_view, save_view
from torchtriage.storage.pagination import Page
from torchtriage.web.authentication import Writer
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.pages.language import language
from torchtriage.web.pages.list_items import IncidentItem, incident_items
from torchtriage.web.pages.rendering import render
from torchtriage.web.pages.urls import address, moment, value

router = APIRouter()
FILTERS = ("q", "outcome", "state", "entry", "host", "user", "cluster", "since", "until", "group")
_STATES = tuple(state.value for state in State)
_OUTCOMES = OUTCOMES
_OURS: dict[str, tuple[str, ...]] = {"outcome": _OUTCOMES, "state": _STATES}  # filters whose values are words of ours
_AT_ONCE = 50
_NUMBER = lazy_regex(r"#(\d{1,18})")
_SAID = ("saved", "removed", "deleted", "right", "wrong", "nothing")  # what can have been done before


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter that is set, and the address without it; `coded` where the value is a word of ours, `wrong` where it
    makes no sense, so that nothing was filtered by it."""

    name: str
    value: str
    coded: bool
    wrong: bool
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
    """`older`, `newer` and `newest` are addresses, None where there is nothing more; `early`: the page is not full
    though there is more, as few of many fit; `query` is what is asked for."""

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
    early: bool
    csv: str
    json: str
    done: Done | None


@router.get("/incidents")
def incidents(request: Request, service: ServiceDep) -> Response:
    asked = asked_filters(request)
    if named := _NUMBER.fullmatch(asked.get("q", "")):  # as people say it to one another
        return RedirectResponse(f"/incidents/{named[1]}", HTTPStatus.SEE_OTHER)
    cursor = value(request, "cursor")
    found = list_summaries(service, filter_of(asked), _AT_ONCE, cursor or None)
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
        early=_early(found, cursor),
        csv=address("/incidents.csv", asked),
        json=address("/incidents.json", asked),
        done=_done(request),
    )
    return render(request, "incidents.html", page)


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


def _early(found: Page[IncidentSummary], cursor: str) -> bool:
    # One that goes back to the newest and reaches them is not full either; there is nothing newer then.
    return len(found.items) < _AT_ONCE and found.next is not None and (found.previous is not None or not cursor)


def asked_filters(request: Request) -> dict[str, str]:
    """-> the filters that are set, as the address has them."""
    return {name: given for name in FILTERS if (given := value(request, name))}


def _done(request: Request) -> Done | None:
    what, count = value(request, "said"), value(request, "n")
    if what not in _SAID:
        return None
    query = urlencode(asked_filters(request))
    return Done(what, count if count.isdecimal() else "1", value(request, "view"), query)


def _link(view: View, query: str) -> ViewLink:
    return ViewLink(view, address("/incidents", dict(parse_qsl(view.query))), view.query == query)


def _chip(asked: dict[str, str], name: str) -> Chip:
    kept = {key: given for key, given in asked.items() if key != name}
    return Chip(name, asked[name], name in _OURS, _is_wrong(name, asked[name]), address("/incidents", kept))


def _is_wrong(name: str, given: str) -> bool:
    return given not in _OURS[name] if name in _OURS else name in ("since", "until") and moment(given) is None


def filter_of(asked: dict[str, str]) -> IncidentFilter:
    """-> the same as what incidents are listed by; what makes no sense is left out."""
    values = {name: given for name, given in asked.items() if not _is_wrong(name, given)}
    state = values.pop("state", None)
    since, until = moment(values.pop("since", "")), moment(values.pop("until", ""), end=True)
    known = IncidentFilter(**values, state=State(state) if state else None)  # type: ignore[arg-type]
    return replace(known, since=since, until=until)
