"""`/groups` and `/groups/{id}`: incidents of one cause, and what was decided about them."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qs, urlencode

from anyio import to_thread
from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from app.domain.group import GroupChange, GroupFilter, GroupStatus
from app.domain.incident import IncidentFilter
from app.errors import BadInput
from app.services.groups import change_group, list_groups, read_group
from app.services.incidents import list_incidents
from app.web.access import Writer
from app.web.deps import ServiceDep
from app.web.pages.items import GroupItem, IncidentItem, group_item, group_items, incident_items
from app.web.pages.language import language
from app.web.pages.rendering import render

router = APIRouter()
_AT_ONCE = 50
_LONGEST_FORM = 1000  # bytes
STATUSES = tuple(status.value for status in GroupStatus)


@dataclass(frozen=True, slots=True)
class GroupsPage:
    """`status` is the one asked for, or None; `older` is an address."""

    items: tuple[GroupItem, ...]
    statuses: tuple[str, ...]
    status: str | None
    older: str | None


@dataclass(frozen=True, slots=True)
class GroupPage:
    """One group and a piece of its incidents; `older` is an address."""

    item: GroupItem
    statuses: tuple[str, ...]
    incidents: tuple[IncidentItem, ...]
    older: str | None


@router.get("/groups")
def groups(request: Request, service: ServiceDep) -> Response:
    asked = request.query_params.get("status")
    status = asked if asked in STATUSES else None
    wanted = GroupFilter(status=GroupStatus(status) if status else None)
    found = list_groups(service, wanted, _AT_ONCE, request.query_params.get("cursor"))
    kept = {"status": status} if status else {}
    page = GroupsPage(
        items=group_items(found.items, service.knowledge, language(request)),
        statuses=STATUSES,
        status=status,
        older=f"/groups?{urlencode(kept | {'cursor': found.next})}" if found.next else None,
    )
    return render(request, "groups.html", page)


@router.get("/groups/{group_id}")
def group(request: Request, service: ServiceDep, group_id: str) -> Response:
    found = read_group(service, group_id)
    lang = language(request)
    cursor = request.query_params.get("cursor")
    members = list_incidents(service, IncidentFilter(group=found.id), _AT_ONCE, cursor)
    page = GroupPage(
        item=group_item(found, service.knowledge, lang),
        statuses=STATUSES,
        incidents=incident_items(members.items, service.knowledge, lang),
        older=f"?{urlencode({'cursor': members.next})}" if members.next else None,
    )
    return render(request, "group.html", page)


@router.post("/groups/{group_id}")
async def decide(request: Request, service: ServiceDep, group_id: str, caller: Writer) -> Response:
    """Sets the group's status to what the form says."""
    change = GroupChange(await _status(request))
    changed = await to_thread.run_sync(change_group, service, group_id, change, caller.name)
    return RedirectResponse(f"/groups/{changed.id}", HTTPStatus.SEE_OTHER)


async def _status(request: Request) -> GroupStatus:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LONGEST_FORM:
            raise BadInput("the form is too long")
    given = parse_qs(body.decode("ascii", "replace")).get("status", [""])[0]
    if given not in STATUSES:
        raise BadInput(f"the status is one of {', '.join(STATUSES)}")
    return GroupStatus(given)
