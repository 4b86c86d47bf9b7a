"""`/groups/{id}`: what failed, which jobs and hosts are affected, what was tried, and all decisions about the group."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from starlette.responses import RedirectResponse

from torchtriage.answer.first_screen import first_screen
from torchtriage.answer.localized_verdict import localized
from torchtriage.domain.entry import Language
from torchtriage.domain.first_screen import FirstScreen
from torchtriage.domain.group import Group, GroupChange, GroupIssue
from torchtriage.domain.group_composition import Composition, LaterAttempt
from torchtriage.domain.incident import Feedback, IncidentFilter
from torchtriage.domain.incident_summary import IncidentSummary
from torchtriage.domain.verdict import Verdict
from torchtriage.errors import BadInput
from torchtriage.services.group_composition import composition, later_attempts, said_of_group
from torchtriage.services.groups import (
    BY_FINGERPRINT,
    change_group,
    merge_groups,
    merged_groups,
    read_group,
    similar_groups,
    split_group,
    trends,
    unmerge_groups,
)
from torchtriage.services.incidents import list_summaries, read_incident
from torchtriage.services.issues import ask_for_issue, issues_of
from torchtriage.services.service import Service
from torchtriage.web.authentication import Writer
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.pages.charts import Drawn
from torchtriage.web.pages.groups import DAYS, STATUSES, drawn_trends, status_of
from torchtriage.web.pages.language import language
from torchtriage.web.pages.list_items import GroupItem, IncidentItem, group_item, group_items, incident_items
from torchtriage.web.pages.rendering import render
from torchtriage.web.pages.urls import address, value

router = APIRouter()
_BATCH_SIZE = 25
_MUTES = (1, 7, 30)  # days
_MAX_NOTE_LENGTH = 5000  # characters
_SURE = ("certain", "likely", "possible")
_SHOWN = 6  # attempts and notes
SPLIT_BY = ("cluster", "user", "host", BY_FINGERPRINT)


@dataclass(frozen=True, slots=True)
class Regrouped:
    """A merge or split that was just done, and the group in which it can be undone."""

    what: str
    other: str


@dataclass(frozen=True, slots=True)
class GroupAnswer:
    """The answer that a group shows: that of the newest incident with the highest confidence, in the reader's
    language."""

    id: str
    verdict: Verdict
    screen: FirstScreen


@dataclass(frozen=True, slots=True)
class Tried:
    """What was tried: `came` counts the results of the next attempts, `attempts` are the latest of them. `right` and
    `wrong` count the feedback on the verdict, and `notes` are its comments, each with its incident's id."""

    came: dict[str, int]
    attempts: tuple[LaterAttempt, ...]
    right: int
    wrong: int
    notes: tuple[tuple[str, Feedback], ...]


@dataclass(frozen=True, slots=True)
class GroupPage:
    """A group and one page of its incidents. `older` and `newer` are URLs. `muted`: no alerts are sent now. `parts` are
    the properties by which it can be split, with their values. `merged` are the groups merged into it; `came_by` is the
    merged group from which the reader was redirected. `issues` are its issues in trackers."""

    item: GroupItem
    answer: GroupAnswer | None
    trend: Drawn
    days: int
    statuses: tuple[str, ...]
    mutes: tuple[int, ...]
    muted: bool
    composition: Composition
    tried: Tried
    parts: dict[str, tuple[str, ...]]
    merged: tuple[Group, ...]
    similar: tuple[GroupItem, ...]
    incidents: tuple[IncidentItem, ...]
    issues: tuple[GroupIssue, ...]
    older: str | None
    newer: str | None
    regrouped: Regrouped | None
    came_by: str | None


@router.get("/groups/{group_id}")
def group(request: Request, service: ServiceDep, group_id: str) -> Response:
    found = read_group(service, group_id)
    if found.merged_into:
        return RedirectResponse(address(f"/groups/{found.merged_into}", {"from": found.id}), HTTPStatus.FOUND)
    if found.id != group_id:
        return RedirectResponse(f"/groups/{found.id}", HTTPStatus.FOUND)
    lang = language(request)
    within = list_summaries(service, IncidentFilter(group=found.id), _BATCH_SIZE, value(request, "cursor") or None)
    made_of = composition(service, found.id)
    came_by = value(request, "from")
    page = GroupPage(
        item=group_item(found, service.knowledge, lang),
        answer=_answer(service, within.items, lang),
        trend=drawn_trends(trends(service, [found.id], DAYS), _day_of)[found.id],
        days=DAYS,
        statuses=STATUSES,
        mutes=_MUTES,
        muted=found.muted_until is not None and found.muted_until > datetime.now(UTC),
        composition=made_of,
        tried=_tried(service, found.id),
        parts=_parts(made_of, found),
        merged=tuple(merged_groups(service, found)),
        similar=group_items(similar_groups(service, found), service.knowledge, lang),
        incidents=incident_items(within.items, service.knowledge, lang),
        issues=tuple(issues_of(service, found.id)),
        older=address("", {"cursor": within.next}) if within.next else None,
        newer=address("", {"cursor": within.previous}) if within.previous else None,
        regrouped=_regrouped(request),
        came_by=came_by if came_by in found.merged else None,
    )
    return render(request, "group.html", page)


@router.post("/groups/{group_id}")
def decide(
    service: ServiceDep,
    group_id: str,
    caller: Writer,
    status: Annotated[str | None, Form()] = None,
    owner: Annotated[str | None, Form(max_length=200)] = None,
    note: Annotated[str | None, Form(max_length=_MAX_NOTE_LENGTH)] = None,
    mute: Annotated[int | None, Form(ge=0, le=365)] = None,
) -> Response:
    """Sets the fields in the form: status, owner and note, or the number of days to mute the group."""
    if status is None and owner is None and note is None and mute is None:
        raise BadInput("no action was chosen")
    change = GroupChange(
        status_of(status) if status is not None else None,
        " ".join(owner.split()) if owner is not None else None,
        note.strip() if note is not None else None,
        timedelta(days=mute) if mute is not None else None,
    )
    return _there(change_group(service, group_id, change, caller.name).id)


@router.post("/groups/{group_id}/issues")
def create_issue(service: ServiceDep, group_id: str, caller: Writer, channel: Annotated[str, Form()] = "") -> Response:
    """Requests an issue about the group in a tracker."""
    ask_for_issue(service, group_id, channel, caller.name)
    return RedirectResponse(f"/groups/{group_id}#issues", HTTPStatus.SEE_OTHER)


@router.post("/groups/{group_id}/merge")
def merge(
    service: ServiceDep,
    group_id: str,
    caller: Writer,
    other: Annotated[list[str] | None, Form()] = None,
    named: Annotated[str, Form()] = "",
) -> Response:
    """Merges the selected groups, or those whose numbers are given, into this one."""
    others = list(dict.fromkeys([*(other or []), *named.replace("#", " ").replace(",", " ").split()]))
    if not others:
        raise BadInput("choose a group, or enter its number")
    merged = merge_groups(service, group_id, others, caller.name)
    return _there(merged.id, said="merged", other=",".join(others))


@router.post("/groups/{group_id}/unmerge")
def unmerge(
    service: ServiceDep, group_id: str, caller: Writer, other: Annotated[list[str] | None, Form()] = None
) -> Response:
    """Undoes merges."""
    others = [name for given in other or [] for name in given.split(",")]
    return _there(unmerge_groups(service, group_id, others, caller.name).id, said="unmerged", other=",".join(others))


@router.post("/groups/{group_id}/split")
def split(service: ServiceDep, group_id: str, caller: Writer, part: Annotated[str, Form()] = "") -> Response:
    """Moves incidents to a group of their own. `part` has the form `cluster=blue`."""
    by, _, wanted = part.partition("=")
    if by not in SPLIT_BY or not wanted:
        raise BadInput("choose what to split off")
    own = split_group(service, group_id, by, wanted, caller.name)
    return _there(group_id, said="split", other=own.id)


def _answer(service: Service, incidents: tuple[IncidentSummary, ...], lang: Language) -> GroupAnswer | None:
    rooted = [(incident.id, incident.root) for incident in incidents if incident.root]
    best = min(rooted, key=lambda one: _SURE.index(one[1].confidence) if one[1].confidence in _SURE else len(_SURE),
               default=None)  # fmt: skip
    verdict = read_incident(service, best[0]).verdict if best else None
    if best is None or verdict is None:
        return None
    verdict = localized(verdict, service.knowledge, lang)
    return GroupAnswer(best[0], verdict, first_screen(verdict, lang))


def _tried(service: Service, group_id: str) -> Tried:
    attempts, said = later_attempts(service, group_id), said_of_group(service, group_id)
    came = Counter(attempt.came for attempt in attempts)
    verdicts = Counter(feedback.verdict for _, feedback in said)
    return Tried(
        {name: came[name] for name in ("healthy", "same", "other", "unknown")},
        tuple(attempt for attempt in attempts if attempt.next)[:_SHOWN],
        verdicts["right"],
        verdicts["wrong"],
        tuple(one for one in said if one[1].note)[:_SHOWN],
    )


def _parts(made_of: Composition, group: Group) -> dict[str, tuple[str, ...]]:
    values = {name: made_of.values.get(name, ()) for name in SPLIT_BY} | {BY_FINGERPRINT: group.fingerprints}
    return {name: known for name, known in values.items() if len(known) > 1}


def _day_of(group_id: str, day: str) -> str:
    return address("/incidents", {"group": group_id, "day": day})


def _regrouped(request: Request) -> Regrouped | None:
    what, other = value(request, "said"), value(request, "other")
    known = what in ("merged", "unmerged", "split") and other.replace(",", "").isdecimal()
    return Regrouped(what, other) if known else None


def _there(group_id: str, **said: str) -> Response:
    return RedirectResponse(address(f"/groups/{group_id}", said), HTTPStatus.SEE_OTHER)
