"""`/knowledge` and `/knowledge/{entry}`: what torchtriage knows, by area or found by symptom, and an entry whole."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from fastapi import APIRouter, Request, Response

from app.domain.entry import Entry, Language, Sign
from app.domain.incident import IncidentFilter
from app.errors import NotFound
from app.services.incidents import list_incidents
from app.web.deps import SearchDep, ServiceDep
from app.web.pages.items import IncidentItem, incident_items
from app.web.pages.language import language
from app.web.pages.rendering import render

router = APIRouter()
_RECENT = 6
_FOUND = 15


@dataclass(frozen=True, slots=True)
class Area:
    """The entries of one area, by id."""

    name: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class KnowledgePage:
    """All entries by area, or those that answer the question `asked`, best first; `total` counts all entries."""

    areas: tuple[Area, ...]
    found: tuple[Entry, ...]
    asked: str
    total: int


@dataclass(frozen=True, slots=True)
class SignLine:
    """One pattern of an entry, flat: `joined` says that it must be found together with the one before it."""

    pattern: str
    literal: bool
    where: str
    unless: str | None
    joined: bool


@dataclass(frozen=True, slots=True)
class EntryPage:
    """`known` are the ids of `explains` that are entries; the others are patterns over ids."""

    entry: Entry
    signs: tuple[SignLine, ...]
    known: frozenset[str]
    recent: tuple[IncidentItem, ...]


@router.get("/knowledge")
def knowledge(request: Request, service: ServiceDep, index: SearchDep) -> Response:
    asked = request.query_params.get("q", "")[:300].strip()
    entries = service.knowledge.entries
    by_area = groupby(sorted(entries.values(), key=lambda entry: entry.id), key=lambda entry: entry.area)
    page = KnowledgePage(
        areas=() if asked else tuple(Area(name, tuple(members)) for name, members in by_area),
        found=tuple(entries[hit.entry] for hit in index.search(asked, _FOUND)),
        asked=asked,
        total=len(entries),
    )
    return render(request, "knowledge.html", page)


@router.get("/knowledge/{entry_id}")
def entry(request: Request, service: ServiceDep, entry_id: str) -> Response:
    found = service.knowledge.entries.get(entry_id)
    if found is None:
        raise NotFound("there is no such entry", entry=entry_id[:100])
    lang: Language = language(request)
    recent = list_incidents(service, IncidentFilter(entry=found.id), limit=_RECENT).items
    page = EntryPage(
        entry=found,
        signs=tuple(line for sign in found.signs for line in _flat(sign)),
        known=frozenset(service.knowledge.entries) & frozenset(found.explains),
        recent=incident_items(recent, service.knowledge, lang),
    )
    return render(request, "entry.html", page)


def _flat(sign: Sign, joined: bool = False) -> list[SignLine]:
    if sign.all:
        return [line for at, part in enumerate(sign.all) for line in _flat(part, joined=at > 0)]
    pattern = sign.regex if sign.regex is not None else sign.text
    return [SignLine(pattern or "", sign.regex is None, sign.where, sign.unless, joined)]
