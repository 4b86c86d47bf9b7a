"""/api/v1/knowledge: entries of the knowledge base, and search by symptom."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from torchtriage.domain.entry import Entry, Kind, Language, Text
from torchtriage.errors import NotFound
from torchtriage.web.dependencies import SearchDep, ServiceDep
from torchtriage.web.errors import error_responses
from torchtriage.web.json_responses import Answer

router = APIRouter(prefix="/api/v1/knowledge", tags=["knowledge"])


class KnowledgeQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: Kind | None = None
    area: str | None = None
    owner: str | None = None


class EntryLine(BaseModel):
    id: str
    kind: Kind
    area: str
    owner: str
    title: Text


class EntriesForm(BaseModel):
    items: list[EntryLine]
    next: str | None


class SearchQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    q: str = Field("", max_length=500, description="The symptom, in English, Chinese or both; misspellings are allowed")
    lang: Language = Field("en", description="The language of the titles")
    limit: int = Field(10, ge=1, le=50)


class HitForm(BaseModel):
    """`score`, from 0 to 1, is how much of the query the entry matches."""

    entry: str
    title: str
    score: float


class HitsForm(BaseModel):
    items: list[HitForm]
    next: str | None


@router.get("", responses={200: {"model": EntriesForm}, **error_responses(422)})
def list_entries(query: Annotated[KnowledgeQuery, Query()], service: ServiceDep) -> Response:
    """List all entries by id."""
    wanted = query.model_dump(exclude_none=True)
    entries = service.knowledge.entries
    fitting = (entries[name] for name in sorted(entries))
    items = [_line(entry) for entry in fitting if all(getattr(entry, key) == value for key, value in wanted.items())]
    return Answer({"items": items, "next": None})


@router.get("/search", responses={200: {"model": HitsForm}, **error_responses(422)})
def search_entries(query: Annotated[SearchQuery, Query()], service: ServiceDep, index: SearchDep) -> Response:
    """Search entries by symptom, best first. The list is empty if nothing fits."""
    entries = service.knowledge.entries
    items = [
        {"entry": hit.entry, "title": entries[hit.entry].title.in_(query.lang), "score": hit.score}
        for hit in index.search(query.q, query.limit)
    ]
    return Answer({"items": items, "next": None})


@router.get("/{entry}", responses={200: {"model": Entry}, **error_responses(404, 422)})
def read_entry(entry: str, service: ServiceDep) -> Response:
    """Read one entry in full, in both languages."""
    found = service.knowledge.entries.get(entry)
    if found is None:
        raise NotFound("no such entry", entry=entry[:100])
    return Answer(asdict(found) | {"roles": sorted(found.roles)})


def _line(entry: Entry) -> dict[str, Any]:
    title = {"en": entry.title.en, "zh": entry.title.in_("zh")}
    return {"id": entry.id, "kind": entry.kind.value, "area": entry.area, "owner": entry.owner, "title": title}
