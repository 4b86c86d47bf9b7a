"""`/changes`: the audit log, for administrators: who changed what, filtered by person, action, object and days."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from fastapi import APIRouter, Request, Response

from torchtriage.domain.timestamps import iso
from torchtriage.services import tokens
from torchtriage.storage.audit_log import ChangeFilter
from torchtriage.web.authentication import Admin
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.pages.audit_log import ChangeLine, change_lines
from torchtriage.web.pages.language import language
from torchtriage.web.pages.rendering import render
from torchtriage.web.pages.translations import catalogue
from torchtriage.web.pages.urls import address, day, value

router = APIRouter()
_BATCH_SIZE = 50
_FIELDS = ("by", "action", "kind", "name", "since", "until")


@dataclass(frozen=True, slots=True)
class ChangesPage:
    """`asked` are the filters as they were typed, and `problems` the fields that cannot be used, each with the name of
    the sentence that says why. `people` are suggested. `filtered`: not all changes are listed. `newest` and `older` are
    URLs."""

    items: tuple[ChangeLine, ...]
    asked: dict[str, str]
    problems: dict[str, str]
    people: tuple[str, ...]
    actions: tuple[str, ...]
    kinds: tuple[str, ...]
    filtered: bool
    newest: str | None
    older: str | None
    json: str


@router.get("/changes")
def show(request: Request, service: ServiceDep, _: Admin) -> Response:
    """Raises BadCursor."""
    asked = {name: value(request, name) for name in _FIELDS}
    days = {name: day(asked[name]) for name in ("since", "until")}
    problems = {name: "not_a_day" for name, found in days.items() if asked[name] and found is None}
    if days["since"] and days["until"] and days["until"] < days["since"]:
        problems["until"] = "ends_before"
    actions, kinds = known("act_"), known("kind_of_")
    kind = asked["kind"] if asked["kind"] in kinds else ""
    if asked["name"] and not kind:
        problems["kind"] = "name_of_what"
    kept = {name: given for name, given in asked.items() if name not in problems}
    subject = f"{kind} {kept['name']}" if kind and kept["name"] else None
    wanted = ChangeFilter(
        subject=subject,
        by=kept["by"] or None,
        kind=kind or None,
        action=kept["action"] if kept["action"] in actions else None,
        since=_start(days["since"]),
        until=_start(days["until"], after=True) if "until" not in problems else None,
    )
    cursor = value(request, "cursor") or None
    page = tokens.changes(service.database, wanted, _BATCH_SIZE, cursor)
    times = {"since": iso(wanted.since), "until": iso(wanted.until)}
    named = {"by": wanted.by, "action": wanted.action, "kind": wanted.kind, "subject": subject}
    return render(
        request,
        "changes.html",
        ChangesPage(
            items=change_lines(page.items, language(request)),
            asked=asked,
            problems=problems,
            people=tokens.authors(service.database),
            actions=actions,
            kinds=kinds,
            filtered=wanted != ChangeFilter(),
            newest=address("/changes", asked) if cursor else None,
            older=address("/changes", asked | {"cursor": page.next}) if page.next else None,
            json=address("/api/v1/changes", named | times),
        ),
    )


def known(prefix: str) -> tuple[str, ...]:
    """Returns the actions or the kinds of objects that have a word, as they are stored."""
    return tuple(name.removeprefix(prefix).replace("_", " ") for name in catalogue() if name.startswith(prefix))


def _start(found: date | None, after: bool = False) -> datetime | None:
    """Returns the start of a day in UTC, or with `after` that of the next day."""
    return datetime.combine(found, time(), UTC) + timedelta(days=after) if found else None
