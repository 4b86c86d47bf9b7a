"""`/unexplained`: failures that no entry names, the heaviest first, and the draft of an entry for each."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from torchtriage.domain.group import Group, GroupFilter, GroupOrder, GroupStatus
from torchtriage.domain.incident import Incident
from torchtriage.errors import NotFound
from torchtriage.knowledge.new_entry import draft, name_for
from torchtriage.services.groups import latest_incidents, list_groups, read_group
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.pages.groups import ORDERS, Choice
from torchtriage.web.pages.language import language
from torchtriage.web.pages.list_items import GroupItem, group_item
from torchtriage.web.pages.rendering import render
from torchtriage.web.pages.urls import address, value

router = APIRouter()
_AT_ONCE = 25


@dataclass(frozen=True, slots=True)
class UnexplainedGroup:
    """A group with the latest incident's words: the line that tells what failed, and where it stands."""

    item: GroupItem
    incident: str | None
    line: int | None
    text: str | None
    frame: str | None


@dataclass(frozen=True, slots=True)
class UnexplainedPage:
    """`older` and `newer` are addresses."""

    items: tuple[UnexplainedGroup, ...]
    orders: tuple[Choice, ...]
    older: str | None
    newer: str | None


@dataclass(frozen=True, slots=True)
class DraftPage:
    """The YAML of a new entry; `path` is where it belongs in a folder of entries."""

    item: GroupItem
    entry: str
    path: str
    yaml: str


@router.get("/unexplained")
def unexplained(request: Request, service: ServiceDep) -> Response:
    sort = value(request, "sort")
    order = GroupOrder(sort) if sort in ORDERS else GroupOrder.COST
    wanted = GroupFilter(status=GroupStatus.OPEN, outcome="unexplained", sort=order)
    found = list_groups(service, wanted, _AT_ONCE, value(request, "cursor") or None)
    latest = latest_incidents(service, [group.id for group in found.items])
    asked = {"sort": order.value}
    lang = language(request)
    page = UnexplainedPage(
        items=tuple(
            _unexplained_group(group_item(group, service.knowledge, lang), latest.get(group.id))
            for group in found.items
        ),
        orders=tuple(Choice(name, address("/unexplained", {"sort": name}), name == order.value) for name in ORDERS),
        older=address("/unexplained", asked | {"cursor": found.next}) if found.next else None,
        newer=address("/unexplained", asked | {"cursor": found.previous}) if found.previous else None,
    )
    return render(request, "unexplained.html", page)


@router.get("/unexplained/{group_id}")
def entry_for(request: Request, service: ServiceDep, group_id: str) -> Response:
    """The draft of an entry that would explain a group."""
    group = read_group(service, group_id)
    failed = _failed(service, group)
    entry = name_for(failed)
    page = DraftPage(
        item=group_item(group, service.knowledge, language(request)),
        entry=entry,
        path=f"{entry.replace('.', '/', 1)}.yaml",
        yaml=draft(entry, failed),
    )
    return render(request, "draft.html", page)


def _failed(service: ServiceDep, group: Group) -> str:
    known = latest_incidents(service, [group.id]).get(group.id)
    root = known.root_cause if known else None
    if root and root.exception:
        message = root.exception.message.strip()
        return f"{root.exception.type}: {message}" if message else root.exception.type
    words = root.evidence[0].text if root and root.evidence else group.signature
    if not words:
        raise NotFound("the group has no incident to draft an entry from", group=group.id)
    return words.strip()


def _unexplained_group(item: GroupItem, latest: Incident | None) -> UnexplainedGroup:
    root = latest.root_cause if latest else None
    line = root.evidence[0] if root and root.evidence else None
    frames = root.exception.frames if root and root.exception else ()
    own = [frame for frame in frames if frame.user_code] or frames
    frame = f"{own[-1].file}:{own[-1].line} {own[-1].function}" if own else None
    return UnexplainedGroup(
        item, latest.id if latest else None, line.line if line else None, line.text if line else None, frame
    )
