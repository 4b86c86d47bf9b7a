"""/api/v1/changes"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from app.services import access
from app.web.access import Admin
from app.web.answers import Answer
from app.web.api.questions import PageQuery, Word
from app.web.deps import ServiceDep
from app.web.errors import told

router = APIRouter(prefix="/api/v1", tags=["changes"])


class ChangesQuery(PageQuery):
    subject: Word = Field(None, description="What was changed, as in `group 7`, `incident 12` or `token 3`")
    by: Word = Field(None, description="Who changed it")


class ChangeForm(BaseModel):
    """Who did what to which thing, when; `detail` tells what was otherwise, under `before` and `after`."""

    id: str
    at: datetime
    by: str
    action: str
    subject: str
    detail: dict[str, Any]


class ChangesForm(BaseModel):
    items: list[ChangeForm]
    next: str | None


@router.get("/changes", responses={200: {"model": ChangesForm}, **told(400, 422)})
def list_changes(query: Annotated[ChangesQuery, Query()], service: ServiceDep, _: Admin) -> Response:
    """The trail of changes, the latest first; its rows are kept for good."""
    page = access.changes(service.database, query.subject, query.limit, query.cursor, query.by)
    return Answer({"items": [change.as_dict() for change in page.items], "next": page.next})
