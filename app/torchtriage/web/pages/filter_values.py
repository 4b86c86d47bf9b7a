"""`/incidents/values`: the possible values of each filter, with counts; as JSON for the suggestions in the list's
form."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Request, Response
from starlette.responses import JSONResponse

from torchtriage.answer.localized_verdict import title_of
from torchtriage.domain.entry import Language
from torchtriage.services.filter_values import FILTERS, values
from torchtriage.services.service import Service
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.pages.incidents import asked_filters, filter_of, value_word
from torchtriage.web.pages.language import language
from torchtriage.web.pages.rendering import render
from torchtriage.web.pages.urls import address

router = APIRouter()


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a filter, its displayed text if that differs, the number of incidents with it, and the URL of their
    list."""

    value: str
    text: str
    count: int
    address: str


@dataclass(frozen=True, slots=True)
class ValuesPage:
    """The values of each filter. `back` is the URL of the list with the current filters."""

    looked_at: int
    values: dict[str, tuple[Value, ...]]
    back: str


@router.get("/incidents/values")
def as_page(request: Request, service: ServiceDep) -> Response:
    return render(request, "filter_values.html", _page(service, asked_filters(request), language(request)))


@router.get("/incidents/values.json")
def as_json(request: Request, service: ServiceDep) -> Response:
    """Returns for each filter its values, with their texts and counts."""
    page = _page(service, asked_filters(request), language(request))
    values = {name: [[one.value, one.text, one.count] for one in found] for name, found in page.values.items()}
    return JSONResponse(values, headers={"Cache-Control": "private, no-cache", "Vary": "Accept-Language, Cookie"})


def _page(service: Service, asked: dict[str, str], lang: Language) -> ValuesPage:
    found = values(service, filter_of(asked), asked)
    shown = {
        name: tuple(
            Value(one, _text(service, lang, name, one), count, address("/incidents", asked | {name: one}))
            for one, count in found.counts[name].items()
        )
        for name in FILTERS
    }
    return ValuesPage(found.looked_at, shown, address("/incidents", asked))


def _text(service: Service, lang: Language, name: str, one: str) -> str:
    if name == "entry":
        return title_of(one, service.knowledge, lang) or one
    return value_word(lang, name, one)
