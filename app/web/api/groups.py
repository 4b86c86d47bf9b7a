"""/api/v1/groups"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.services import incidents
from app.web.answers import Answer
from app.web.api.forms import GroupChange, GroupForm, GroupsForm, GroupsQuery, page_of
from app.web.deps import ServiceDep
from app.web.errors import told

router = APIRouter(prefix="/api/v1/groups", tags=["groups"])


@router.get("", responses={200: {"model": GroupsForm}, **told(400, 422)})
def list_groups(query: Annotated[GroupsQuery, Query()], service: ServiceDep) -> Response:
    """Groups, the latest seen first; their fingerprints are only told when one is read."""
    page = incidents.list_groups(service, query.wanted(), query.limit, query.cursor)
    return Answer(page_of(page, service.settings.base_url))


@router.get("/{group}", responses={200: {"model": GroupForm}, **told(404, 422)})
def read_group(group: str, service: ServiceDep) -> Response:
    """One group; its incidents are `/api/v1/incidents?group=`."""
    return Answer(incidents.read_group(service, group).as_dict(service.settings.base_url))


@router.patch("/{group}", responses={200: {"model": GroupForm}, **told(400, 403, 404, 422)})
def change_group(group: str, change: GroupChange, service: ServiceDep) -> Response:
    """Set a group's status."""
    changed = incidents.set_group_status(service, group, change.status)
    return Answer(changed.as_dict(service.settings.base_url))
