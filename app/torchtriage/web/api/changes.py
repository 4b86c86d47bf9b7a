"""/api/v1/changes: the audit log."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from torchtriage.services import tokens
from torchtriage.storage.audit_log import ChangeFilter
from torchtriage.web.api.request_models import Moment, PageQuery, Word
from torchtriage.web.api.response_models import ChangesForm
from torchtriage.web.authentication import Admin
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.errors import error_responses
from torchtriage.web.json_responses import Answer

router = APIRouter(prefix="/api/v1", tags=["changes"])


class ChangesQuery(PageQuery):
    subject: Word = Field(None, description="What was changed, as in `group 7`, `incident 12` or `token 3`")
    by: Word = Field(None, description="Who changed it")
    kind: Word = Field(None, description="The kind of what was changed, as in `group`, `incident` or `token`")
    action: Word = Field(None, description="What was done, as in `feedback`, `merge` or `revoke`")
    since: Moment = Field(None, description="Only changes from this time on")
    until: Moment = Field(None, description="Only changes before this time")


@router.get("/changes", responses={200: {"model": ChangesForm}, **error_responses(400, 422)})
def list_changes(query: Annotated[ChangesQuery, Query()], service: ServiceDep, _: Admin) -> Response:
    """Read the audit log, latest change first. It is never deleted."""
    wanted = ChangeFilter(query.subject, query.by, query.kind, query.action, query.since, query.until)
    page = tokens.changes(service.database, wanted, query.limit, query.cursor)
    return Answer({"items": [change.as_dict() for change in page.items], "next": page.next})
