"""`/knowledge`: the knowledge base, by area or by symptom search, filtered by owner and kind."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby

from fastapi import APIRouter, Request, Response

from torchtriage.domain.dashboard import Range
from torchtriage.domain.entry import Entry, Kind, Language
from torchtriage.knowledge.symptom_search import SearchIndex
from torchtriage.services.dashboard import frequent_entries
from torchtriage.web.dependencies import SearchDep, ServiceDep
from torchtriage.web.pages.language import language
from torchtriage.web.pages.rendering import render
from torchtriage.web.pages.translations import area_name
from torchtriage.web.pages.urls import address, value

router = APIRouter()
_FOUND, _SEARCHED = 15, 100
_SEEN, _DAYS = 9, 30
_TOP_AREAS = 10  # areas that are listed above the others
OWNERS = ("user", "framework", "platform", "hardware")
KINDS = tuple(kind.value for kind in Kind)


@dataclass(frozen=True, slots=True)
class Area:
    """The entries of one area, by id, and the URL of the list with only this area. `big`: it is one of the largest."""

    name: str
    entries: tuple[Entry, ...]
    address: str
    big: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """The query in the URL. An empty value means any."""

    q: str
    area: str
    owner: str
    kind: str

    def fits(self, entry: Entry) -> bool:
        known = ((self.area, entry.area), (self.owner, entry.owner), (self.kind, entry.kind.value))
        return all(wanted in ("", there) for wanted, there in known)


@dataclass(frozen=True, slots=True)
class KnowledgePage:
    """The matching entries by area, or the results for `asked.q`, best first. `total` is the number of all entries.
    `seen` are the entries that explained most failures in the last `days`, with counts; empty if a filter is set.
    `owners` and `kinds` are the choices with the number of their entries; `area_names` are all areas. `broken`: the
    folders cannot be loaded at present."""

    asked: Asked
    areas: tuple[Area, ...]
    seen: tuple[tuple[Entry, int], ...]
    days: int
    found: tuple[Entry, ...]
    total: int
    owners: dict[str, int]
    kinds: dict[str, int]
    area_names: dict[str, int]
    without_area: str
    broken: bool


@router.get("/knowledge")
def knowledge(request: Request, service: ServiceDep, index: SearchDep) -> Response:
    entries = service.knowledge.entries
    asked = _asked(request, {entry.area for entry in entries.values()})
    names = ("q", "area", "owner", "kind")
    kept = {name: getattr(asked, name) for name in names}
    fitting = sorted(filter(asked.fits, entries.values()), key=lambda entry: entry.id)
    lang = language(request)
    found = [
        Area(name, tuple(members), address("/knowledge", kept | {"area": name}))
        for name, members in groupby(fitting, key=lambda entry: entry.area)
    ]
    big = {area.name for area in sorted(found, key=lambda area: -len(area.entries))[:_TOP_AREAS]}
    areas = sorted((replace(area, big=area.name in big) for area in found), key=lambda area: _by_name(lang, area.name))
    owners, kinds = Counter(e.owner for e in entries.values()), Counter(e.kind.value for e in entries.values())
    page = KnowledgePage(
        asked=asked,
        areas=() if asked.q else tuple(areas),
        seen=() if any(kept.values()) else frequent_entries(service, _last(_DAYS), _SEEN),
        days=_DAYS,
        found=_found(asked, index, entries) if asked.q else (),
        total=len(entries),
        owners={owner: owners[owner] for owner in OWNERS},
        kinds={kind: kinds[kind] for kind in KINDS},
        area_names=dict(
            sorted(Counter(e.area for e in entries.values()).items(), key=lambda counted: _by_name(lang, counted[0]))
        ),
        without_area=address("/knowledge", kept | {"area": ""}),
        broken=bool(service.folders.last.problems),
    )
    return render(request, "knowledge.html", page)


def _by_name(lang: Language, area: str) -> str:
    return area_name(lang, area).casefold()


def _last(days: int) -> Range:
    today = datetime.now(UTC).date()
    return Range(today - timedelta(days=days - 1), today)


def _asked(request: Request, areas: set[str]) -> Asked:
    area, owner, kind = (value(request, name) for name in ("area", "owner", "kind"))
    return Asked(
        q=value(request, "q"),
        area=area if area in areas else "",
        owner=owner if owner in OWNERS else "",
        kind=kind if kind in KINDS else "",
    )


def _found(asked: Asked, index: SearchIndex, entries: dict[str, Entry]) -> tuple[Entry, ...]:
    narrowed = bool(asked.area or asked.owner or asked.kind)
    hits = index.search(asked.q, _SEARCHED if narrowed else _FOUND)
    return tuple(filter(asked.fits, (entries[hit.entry] for hit in hits)))[:_FOUND]
