"""`/incidents`: the list of incidents, with filters in the URL, saved views, and CSV."""

from __future__ import annotations

from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Form, Request, Response
from starlette.responses import RedirectResponse

from torchtriage.domain.dashboard import UNKNOWN
from torchtriage.domain.entry import Language
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
from torchtriage.web.pages.translations import area_name, word
from torchtriage.web.pages.urls import address, days_of, moment, value

router = APIRouter()
FILTERS = ("q", "outcome", "state", "entry", "host", "user", "cluster", "queue", "image", "owner", "retry", "label",
           "area", "feedback", "since", "until", "group")  # fmt: skip
# Filters whose values are words of ours.
OURS: dict[str, tuple[str, ...]] = {
    "outcome": (*OUTCOMES, "failed"),
    "state": tuple(state.value for state in State),
    "owner": ("user", "framework", "platform", "hardware", UNKNOWN),
    "retry": ("any", "retry", "retry-elsewhere", "fix-first"),
    "feedback": ("right", "wrong"),
}
_WORDS = {"state": "kind_", "owner": "owner_of_", "retry": "advised_", "feedback": "said_"}
_BATCH_SIZE = 50
_NUMBER = lazy_regex(r"#(\d{1,18})")
_DONE_ACTIONS = ("saved", "removed", "deleted", "right", "wrong", "nothing")  # what can have been done before


@dataclass(frozen=True, slots=True)
class Chip:
    """An active filter with the text of its value, and the URL without it. `wrong`: the value is invalid, so the filter
    is ignored."""

    name: str
    value: str
    wrong: bool
    without: str


@dataclass(frozen=True, slots=True)
class ViewLink:
    """A saved view. `here`: it is the one that is shown."""

    view: View
    address: str
    here: bool


@dataclass(frozen=True, slots=True)
class Done:
    """An action that was just done. `view` and `query` are those of a deleted view, so that the deletion can be
    undone."""

    what: str
    count: str
    view: str
    query: str


@dataclass(frozen=True, slots=True)
class IncidentsPage:
    """`older`, `newer` and `newest` are URLs, or None if there is nothing more. `early`: the page is not full although
    there are more incidents, because few of those checked match. `query` is the current query. `choices` are the texts
    of filters with fixed values. `values` is the URL of all values with counts."""

    items: tuple[IncidentItem, ...]
    asked: dict[str, str]
    chips: tuple[Chip, ...]
    views: tuple[ViewLink, ...]
    choices: dict[str, dict[str, str]]
    values: str
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
    found = list_summaries(service, filter_of(asked), _BATCH_SIZE, cursor or None)
    query, lang = urlencode(asked), language(request)
    here = asked | ({"cursor": cursor} if cursor else {})
    page = IncidentsPage(
        items=incident_items(found.items, service.knowledge, lang),
        asked={name: asked.get(name, "") for name in FILTERS},
        chips=tuple(_chip(asked, name, lang) for name in asked),
        views=tuple(_link(view, query) for view in list_views(service)),
        choices={name: {one: value_word(lang, name, one) for one in OURS[name]} for name in OURS},
        values=address("/incidents/values", asked),
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
    """Saves the current filters as a view with a name."""
    kept = urlencode([(key, given) for key, given in parse_qsl(query) if key in FILTERS])
    save_view(service, name, kept, caller.name)
    return _back(kept, said="saved")


@router.post("/incidents/views/{view_id}/remove")
def remove(service: ServiceDep, caller: Writer, view_id: str) -> Response:
    """Deletes a view. The list then offers to undo that."""
    view = remove_view(service, view_id, caller.name)
    return _back(view.query, said="removed", view=view.name)


def _back(query: str, **said: object) -> Response:
    return RedirectResponse(address("/incidents", dict(parse_qsl(query)) | said), HTTPStatus.SEE_OTHER)


def _early(found: Page[IncidentSummary], cursor: str) -> bool:
    # One that goes back to the newest and reaches them is not full either; there is nothing newer then.
    return len(found.items) < _BATCH_SIZE and found.next is not None and (found.previous is not None or not cursor)


def asked_filters(request: Request) -> dict[str, str]:
    """Returns the filters in the URL. A `day`, which may also be a month, becomes its first and last day."""
    asked = {name: given for name in FILTERS if (given := value(request, name))}
    days = days_of(value(request, "day"))
    return asked | {"since": days[0], "until": days[1]} if days else asked


def _done(request: Request) -> Done | None:
    what, count = value(request, "said"), value(request, "n")
    if what not in _DONE_ACTIONS:
        return None
    query = urlencode(asked_filters(request))
    return Done(what, count if count.isdecimal() else "1", value(request, "view"), query)


def _link(view: View, query: str) -> ViewLink:
    return ViewLink(view, address("/incidents", dict(parse_qsl(view.query))), view.query == query)


def value_word(lang: Language, name: str, given: str) -> str:
    """Returns the text for a filter's value: in the reader's language if it is one of our values, else the value
    itself."""
    if name == "area":
        return ", ".join(
            word(lang, "part_unknown") if one == UNKNOWN else area_name(lang, one) for one in given.split(",")
        )
    if name not in OURS or given not in OURS[name]:
        return given
    if name == "outcome":
        return word(lang, "outcome_failed" if given == "failed" else f"kind_{given}")
    return word(lang, "part_unknown" if given == UNKNOWN else f"{_WORDS[name]}{given}")


def _chip(asked: dict[str, str], name: str, lang: Language) -> Chip:
    kept = {key: given for key, given in asked.items() if key != name}
    shown = value_word(lang, name, asked[name])
    return Chip(name, shown, _is_wrong(name, asked[name]), address("/incidents", kept))


def _is_wrong(name: str, given: str) -> bool:
    return given not in OURS[name] if name in OURS else name in ("since", "until") and moment(given) is None


def filter_of(asked: dict[str, str]) -> IncidentFilter:
    """Returns the filters in the form that the service takes. Invalid values are left out."""
    values = {name: given for name, given in asked.items() if not _is_wrong(name, given)}
    state, failed = values.pop("state", None), values.get("outcome") == "failed"
    if failed:
        del values["outcome"]
    since, until = moment(values.pop("since", "")), moment(values.pop("until", ""), end=True)
    known = IncidentFilter(**values, state=State(state) if state else None)  # type: ignore[arg-type]
    return replace(known, since=since, until=until, failed=failed)
