"""`/incidents`: the list, with filters that live in the address."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from app.domain.incident import IncidentFilter, State
from app.services.incidents import list_incidents
from app.web.deps import ServiceDep
from app.web.pages.items import IncidentItem, incident_items
from app.web.pages.language import language
from app.web.pages.rendering import render

router = APIRouter()
FILTERS = ("q", "outcome", "state", "entry", "cluster", "user", "host")
_STATES = tuple(state.value for state in State)
_OUTCOMES = ("explained", "unexplained", "healthy")
_AT_ONCE = 50
_LONGEST = 300  # characters of a filter


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter that is set, and the address without it; `coded` where the value is a word of ours."""

    name: str
    value: str
    coded: bool
    without: str


@dataclass(frozen=True, slots=True)
class IncidentsPage:
    """`older` and `newest` are addresses; None where there is nothing older, or where this is the list's beginning."""

    items: tuple[IncidentItem, ...]
    asked: dict[str, str]
    chips: tuple[Chip, ...]
    outcomes: tuple[str, ...]
    states: tuple[str, ...]
    older: str | None
    newest: str | None


@router.get("/incidents")
def incidents(request: Request, service: ServiceDep) -> Response:
    asked = {name: value for name in FILTERS if (value := _value(request, name))}
    cursor = _value(request, "cursor") or None
    found = list_incidents(service, _filter(asked), _AT_ONCE, cursor)
    page = IncidentsPage(
        items=incident_items(found.items, service.knowledge, language(request)),
        asked={name: asked.get(name, "") for name in FILTERS},
        chips=tuple(_chip(asked, name) for name in asked),
        outcomes=_OUTCOMES,
        states=_STATES,
        older=_address(asked | {"cursor": found.next}) if found.next else None,
        newest=_address(asked) if cursor else None,
    )
    return render(request, "incidents.html", page)


@router.get("/unexplained")
def unexplained() -> Response:
    """The incidents that no entry names; a list of its own comes later."""
    return RedirectResponse("/incidents?outcome=unexplained")


def _value(request: Request, name: str) -> str:
    """-> a filter's value, without characters that no name has and Postgres refuses."""
    asked = request.query_params.get(name, "")[:_LONGEST]
    return "".join(char for char in asked if char.isprintable()).strip()


def _chip(asked: dict[str, str], name: str) -> Chip:
    ours = {"outcome": _OUTCOMES, "state": _STATES}.get(name, ())
    return Chip(name, asked[name], asked[name] in ours, _address(asked, name))


def _filter(asked: dict[str, str]) -> IncidentFilter:
    values = dict(asked)
    state = values.pop("state", None)
    known = State(state) if state in _STATES else None
    return IncidentFilter(**values, state=known)  # type: ignore[arg-type]


def _address(asked: dict[str, str], without: str = "") -> str:
    kept = {name: value for name, value in asked.items() if name != without}
    return f"/incidents?{urlencode(kept)}" if kept else "/incidents"
