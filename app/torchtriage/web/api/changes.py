"""/api/v1/changes: the audit log."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from torchtriage.services import tokens
from torchtriage.web.api.request_models import PageQuery, Word
from torchtriage.web.api.response_models import ChangesForm
from torchtriage.web.authentication import Admin
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.errors import error_responses
from torchtriage.web.json_responses import Answer

router = APIRouter(prefix="/api/v1", tags=["changes"])


class ChangesQuery(PageQuery):
    subject: Word = Field(None, description="What was changed, as in `group 7`, `incident 12` or `token 3`")
    by: Word = Field(None, description="Who changed it")


@router.get("/changes", responses={200: {"model": ChangesForm}, **error_responses(400, 422)})
def list_changes(query: Annotated[ChangesQuery, Query()], service: ServiceDep, _: Admin) -> Response:
    """Read the audit log, latest change first. It is never deleted."""
    page = tokens.changes(service.database, query.subject, query.limit, query.cursor, query.by)
    return Answer({"items": [change.as_dict() for change in page.items], "next": page.next})
