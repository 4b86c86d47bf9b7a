"""`/unexplained`: unexplained failures, most costly first, each with a link to draft an entry for it."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from torchtriage.domain.group import GroupFilter, GroupOrder, GroupStatus
from torchtriage.domain.incident import Incident
from torchtriage.services.groups import count_by_status, latest_incidents, list_groups
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.pages.groups import ORDERS, Choice
from torchtriage.web.pages.language import language
from torchtriage.web.pages.list_items import GroupItem, group_item
from torchtriage.web.pages.rendering import render
from torchtriage.web.pages.urls import address, value

router = APIRouter()
_BATCH_SIZE = 25


@dataclass(frozen=True, slots=True)
class UnexplainedGroup:
    """A group with the text of its latest incident: the line that shows the failure, and its position."""

    item: GroupItem
    incident: str | None
    line: int | None
    text: str | None
    frame: str | None


@dataclass(frozen=True, slots=True)
class UnexplainedPage:
    """`older` and `newer` are URLs. `left_out` are the groups that are not listed: their status, their number, and the
    number of their incidents."""

    items: tuple[UnexplainedGroup, ...]
    orders: tuple[Choice, ...]
    left_out: tuple[tuple[str, int, int], ...]
    older: str | None
    newer: str | None


@router.get("/unexplained")
def unexplained(request: Request, service: ServiceDep) -> Response:
    sort = value(request, "sort")
    order = GroupOrder(sort) if sort in ORDERS else GroupOrder.COST
    wanted = GroupFilter(status=GroupStatus.OPEN, outcome="unexplained", sort=order)
    found = list_groups(service, wanted, _BATCH_SIZE, value(request, "cursor") or None)
    latest = latest_incidents(service, [group.id for group in found.items])
    asked = {"sort": order.value}
    lang = language(request)
    page = UnexplainedPage(
        items=tuple(
            _unexplained_group(group_item(group, service.knowledge, lang), latest.get(group.id))
            for group in found.items
        ),
        orders=tuple(Choice(name, address("/unexplained", {"sort": name}), name == order.value) for name in ORDERS),
        left_out=tuple(
            (status.value, *counts)
            for status, counts in count_by_status(service, "unexplained").items()
            if status is not GroupStatus.OPEN
        ),
        older=address("/unexplained", asked | {"cursor": found.next}) if found.next else None,
        newer=address("/unexplained", asked | {"cursor": found.previous}) if found.previous else None,
    )
    return render(request, "unexplained.html", page)


def _unexplained_group(item: GroupItem, latest: Incident | None) -> UnexplainedGroup:
    root = latest.root_cause if latest else None
    line = root.evidence[0] if root and root.evidence else None
    frames = root.exception.frames if root and root.exception else ()
    own = [frame for frame in frames if frame.user_code] or frames
    frame = f"{own[-1].file}:{own[-1].line} {own[-1].function}" if own else None
    return UnexplainedGroup(
        item, latest.id if latest else None, line.line if line else None, line.text if line else None, frame
    )
