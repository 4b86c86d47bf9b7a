"""`/knowledge` and `/knowledge/{entry}`: what torchtriage knows, by area, and an entry whole."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from fastapi import APIRouter, Request, Response

from app.domain.entry import Entry, Language, Sign
from app.domain.incident import IncidentFilter
from app.errors import NotFound
from app.services.incidents import list_incidents
from app.web.deps import ServiceDep
from app.web.pages.items import IncidentItem, incident_items
from app.web.pages.language import language
from app.web.pages.rendering import render

router = APIRouter()
_RECENT = 6


@dataclass(frozen=True, slots=True)
class Area:
    """The entries of one area, by id."""

    name: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class KnowledgePage:
    """`asked` is the filter's text; `total` counts all entries, `found` those shown."""

    areas: tuple[Area, ...]
    asked: str
    total: int
    found: int


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
def knowledge(request: Request, service: ServiceDep) -> Response:
    asked = request.query_params.get("q", "")[:300].strip()
    entries = service.knowledge.entries
    found = [entries[name] for name in sorted(entries) if fits(entries[name], asked)]
    areas = tuple(Area(name, tuple(members)) for name, members in groupby(found, key=lambda entry: entry.area))
    return render(request, "knowledge.html", KnowledgePage(areas, asked, len(entries), len(found)))


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


def fits(candidate: Entry, asked: str) -> bool:
    """-> whether every word stands somewhere in the entry's id, titles, questions or patterns, whatever its case."""
    texts = [candidate.id, candidate.title.en, candidate.title.zh, *(question for _, question in candidate.asks)]
    texts += [line.pattern for sign in candidate.signs for line in _flat(sign)]
    text = "\n".join(texts).casefold()
    return all(word in text for word in asked.casefold().split())


def _flat(sign: Sign, joined: bool = False) -> list[SignLine]:
    if sign.all:
        return [line for at, part in enumerate(sign.all) for line in _flat(part, joined=at > 0)]
    pattern = sign.regex if sign.regex is not None else sign.text
    return [SignLine(pattern or "", sign.regex is None, sign.where, sign.unless, joined)]
