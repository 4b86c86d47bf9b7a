"""What answers look like, for the OpenAPI document."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from torchtriage.domain.group import GroupStatus
from torchtriage.domain.incident import State
from torchtriage.domain.verdict import Verdict
from torchtriage.storage.pagination import Page


class FileForm(BaseModel):
    name: str
    sha256: str
    bytes: int
    lines: int


class LogForm(BaseModel):
    sha256: str
    bytes: int
    lines: int
    files: list[FileForm]


class GroupMarkForm(BaseModel):
    id: str
    status: GroupStatus
    count: int


class FeedbackForm(BaseModel):
    verdict: Literal["right", "wrong"]
    entry: str | None
    note: str | None
    by: str
    at: datetime


class IncidentForm(BaseModel):
    """One failed run. `verdict` is null until `state` is `triaged`; `failure` says why where it is `failed`."""

    id: str
    url: str
    state: State
    failure: str | None
    received_at: datetime
    triaged_at: datetime | None
    job: dict[str, Any]
    group: GroupMarkForm | None
    verdict: Verdict | None
    log: LogForm
    gpu_hours_lost: float | None
    feedback: list[FeedbackForm]


class RepeatForm(BaseModel):
    """An incident that was there already, for who may not read."""

    id: str
    state: State


class IncidentsForm(BaseModel):
    items: list[IncidentForm]
    next: str | None
    previous: str | None


class LineForm(BaseModel):
    line: int
    text: str
    cut: bool = Field(description="The line goes on, but is too long to be shown whole")


class LinesForm(BaseModel):
    """Lines of one file of the log, secrets taken out; `next` is the `from` of those after, null at the end."""

    file: str
    total: int
    lines: list[LineForm]
    next: int | None


class SuggestionForm(BaseModel):
    """What a language model said; nothing of it was checked, and it never changes a verdict."""

    text: str
    model: str
    made_at: datetime


class GroupForm(BaseModel):
    id: str
    url: str
    status: GroupStatus
    count: int
    signature: str | None
    title: str | None
    entry: str | None
    outcome: str
    first_seen: datetime
    last_seen: datetime
    resolved_at: datetime | None
    regressed_at: datetime | None = Field(description="When an incident came after the group had been resolved")
    owner: str | None
    note: str | None
    muted_until: datetime | None
    gpu_hours_lost: float | None
    merged_into: str | None
    merged: list[str]
    came_from: str | None = Field(description="The group out of which later knowledge took this one")
    fingerprints: list[str]
    generated: SuggestionForm | None = Field(description="Only when one group is read, and where a model is set")


class GroupsForm(BaseModel):
    items: list[GroupForm]
    next: str | None
    previous: str | None


def page_of(page: Page[Any], base_url: str) -> dict[str, Any]:
    """-> a list's answer."""
    return {"items": [item.as_dict(base_url) for item in page.items], "next": page.next, "previous": page.previous}
