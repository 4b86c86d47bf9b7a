"""`/groups`: groups of incidents by cost, count or time, with their trend and status."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from starlette.responses import RedirectResponse

from torchtriage.domain.entry import Language
from torchtriage.domain.group import Group, GroupFilter, GroupOrder, GroupStatus
from torchtriage.errors import BadInput
from torchtriage.services.groups import change_groups, latest_summaries, list_groups, trends, unsettled
from torchtriage.services.service import Service
from torchtriage.web.authentication import Writer
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.pages.charts import Drawn, spark
from torchtriage.web.pages.csv_export import csv_answer
from torchtriage.web.pages.language import language
from torchtriage.web.pages.list_items import GroupItem, group_items
from torchtriage.web.pages.rendering import render
from torchtriage.web.pages.urls import address, value

router = APIRouter()
_BATCH_SIZE = 50
DAYS = 30
STATUSES = tuple(status.value for status in GroupStatus)
ORDERS = tuple(order.value for order in GroupOrder)


@dataclass(frozen=True, slots=True)
class Choice:
    """A link to another list of groups."""

    name: str
    address: str
    here: bool


@dataclass(frozen=True, slots=True)
class Decided:
    """A change that was just made. `was` is the previous status of each group, which undoes it: `1:open,2:ignored`."""

    status: str
    count: int
    was: str


@dataclass(frozen=True, slots=True)
class GroupsPage:
    """`older` and `newer` are URLs. `asked` is the query in the URL. `unsettled` is the number of fingerprints whose
    group after an upgrade is not known yet."""

    items: tuple[GroupItem, ...]
    trends: dict[str, Drawn]
    days: int
    statuses: tuple[Choice, ...]
    orders: tuple[Choice, ...]
    all_statuses: tuple[str, ...]
    asked: dict[str, str]
    here: str
    older: str | None
    newer: str | None
    csv: str
    json: str
    decided: Decided | None
    unsettled: int


@router.get("/groups")
def groups(request: Request, service: ServiceDep) -> Response:
    asked, wanted = _asked(request, service)
    cursor = value(request, "cursor")
    found = list_groups(service, wanted, _BATCH_SIZE, cursor or None)
    latest = latest_summaries(service, [group.id for group in found.items])
    here = asked | {"cursor": cursor}
    page = GroupsPage(
        items=group_items(found.items, service.knowledge, language(request), latest),
        trends=drawn_trends(trends(service, [group.id for group in found.items], DAYS)),
        days=DAYS,
        statuses=tuple(
            Choice(name, address("/groups", asked | {"status": name}), asked["status"] == name)
            for name in ("", *STATUSES)
        ),
        orders=tuple(
            Choice(name, address("/groups", asked | {"sort": name}), wanted.sort.value == name) for name in ORDERS
        ),
        all_statuses=STATUSES,
        asked=asked,
        here=address("", here).removeprefix("?"),
        older=address("/groups", asked | {"cursor": found.next}) if found.next else None,
        newer=address("/groups", asked | {"cursor": found.previous}) if found.previous else None,
        csv=address("/groups.csv", here),
        json=address("/api/v1/groups", here),
        decided=_decided(request),
        unsettled=unsettled(service),
    )
    return render(request, "groups.html", page)


@router.get("/groups.csv")
def as_csv(request: Request, service: ServiceDep) -> Response:
    """Returns what the list shows for the same query."""
    found = list_groups(service, _asked(request, service)[1], _BATCH_SIZE, value(request, "cursor") or None)
    return csv_answer("groups", _rows(found.items, service.settings.base_url))


@router.post("/groups/bulk")
def bulk(
    service: ServiceDep,
    caller: Writer,
    group: Annotated[list[str] | None, Form()] = None,
    status: Annotated[str, Form()] = "",
    here: Annotated[str, Form()] = "",
) -> Response:
    """Sets the status of the selected groups. The list then offers to undo that."""
    before = change_groups(service, list(dict.fromkeys(group or []))[:_BATCH_SIZE], status_of(status), caller.name)
    was = ",".join(f"{group_id}:{known.value}" for group_id, known in before.items())
    return _back(here, f"said={status}&was={was}")


@router.post("/groups/undo")
def undo(
    service: ServiceDep, caller: Writer, was: Annotated[str, Form()] = "", here: Annotated[str, Form()] = ""
) -> Response:
    """Restores the previous status of groups."""
    for part in was.split(",")[:_BATCH_SIZE]:
        group_id, _, status = part.partition(":")
        change_groups(service, [group_id], status_of(status), caller.name)
    return _back(here)


def status_of(given: str) -> GroupStatus:
    """Returns the group status with this name. Raises BadInput if there is none."""
    if given not in STATUSES:
        raise BadInput(f"the status must be one of {', '.join(STATUSES)}")
    return GroupStatus(given)


def drawn_trends(counts: dict[str, list[int]], link: Callable[[str, str], str] | None = None) -> dict[str, Drawn]:
    """Returns bars for the counts of the days until today (UTC). `link` returns the URL for a group and a day."""
    days = last_days(len(next(iter(counts.values()), [])))
    return {
        group_id: spark(found, days, partial(_at, link, group_id) if link else None)
        for group_id, found in counts.items()
    }


def _at(link: Callable[[str, str], str], group_id: str, day: str, _: str) -> str:
    return link(group_id, day) if day else ""


def last_days(count: int) -> tuple[str, ...]:
    """Returns the last `count` days until today, in UTC, such as `2026-05-01`."""
    today = datetime.now(UTC).date()
    return tuple((today - timedelta(days=back)).isoformat() for back in reversed(range(count)))


def _asked(request: Request, service: Service) -> tuple[dict[str, str], GroupFilter]:
    status, sort = value(request, "status"), value(request, "sort")
    outcome = value(request, "outcome")
    asked = {
        "status": status if status in STATUSES else "",
        "sort": sort if sort in ORDERS else "",
        "outcome": outcome if outcome in ("explained", "unexplained") else "",
        "entry": value(request, "entry"),
        "q": value(request, "q"),
    }
    return asked, GroupFilter(
        status=GroupStatus(asked["status"]) if asked["status"] else None,
        entry=asked["entry"] or None,
        outcome=asked["outcome"] or None,
        words=asked["q"] or None,
        entries=_titled(service, language(request), asked["q"].lower().split()),
        sort=GroupOrder(asked["sort"]) if asked["sort"] else GroupOrder.SEEN,
    )


def _titled(service: Service, lang: Language, words: list[str]) -> tuple[str, ...]:
    """Returns the entries whose title in the reader's language contains all the words, because groups store only the
    English title."""
    if not words or lang == "en":
        return ()
    known = service.knowledge.entries.values()
    return tuple(entry.id for entry in known if all(word in entry.title.in_(lang).lower() for word in words))


def _decided(request: Request) -> Decided | None:
    status, was = value(request, "said"), value(request, "was")
    return Decided(status, was.count(":"), was) if status in STATUSES else None


def _back(here: str, more: str = "") -> Response:
    query = "&".join(filter(None, (here, more)))
    return RedirectResponse(f"/groups?{query}" if query else "/groups", HTTPStatus.SEE_OTHER)


def _rows(items: tuple[Group, ...], base_url: str) -> Iterator[list[object]]:
    names = ("id", "url", "status", "count", "gpu_hours_lost", "entry", "title", "signature", "outcome", "first_seen",
             "last_seen", "regressed_at", "owner", "note")  # fmt: skip
    yield list(names)
    for item in items:
        values = item.as_dict(base_url)
        yield [values[name] for name in names]
