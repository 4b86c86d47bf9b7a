"""/api/v1/knowledge"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict

from app.domain.entry import Entry, Kind, Text
from app.errors import NotFound
from app.web.answers import Answer
from app.web.deps import ServiceDep
from app.web.errors import told

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


@router.get("", responses={200: {"model": EntriesForm}, **told(422)})
def list_entries(query: Annotated[KnowledgeQuery, Query()], service: ServiceDep) -> Response:
    """All entries, by id."""
    wanted = query.model_dump(exclude_none=True)
    entries = service.knowledge.entries
    fitting = (entries[name] for name in sorted(entries))
    items = [_line(entry) for entry in fitting if all(getattr(entry, key) == value for key, value in wanted.items())]
    return Answer({"items": items, "next": None})


@router.get("/{entry}", responses={200: {"model": Entry}, **told(404, 422)})
def read_entry(entry: str, service: ServiceDep) -> Response:
    """One entry, whole, in both languages."""
    found = service.knowledge.entries.get(entry)
    if found is None:
        raise NotFound("there is no such entry", entry=entry[:100])
    return Answer(asdict(found))


def _line(entry: Entry) -> dict[str, Any]:
    title = {"en": entry.title.en, "zh": entry.title.zh}
    return {"id": entry.id, "kind": entry.kind.value, "area": entry.area, "owner": entry.owner, "title": title}
