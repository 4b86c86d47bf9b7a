"""`/decisions`: decisions about failed attempts, how they turned out, and their score."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from torchtriage.decision.wording import reason, what
from torchtriage.domain.decision import DecisionRecord, Score
from torchtriage.services import decisions
from torchtriage.storage.decisions import SCORED, DecisionFilter
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.pages.groups import Choice
from torchtriage.web.pages.language import language
from torchtriage.web.pages.list_items import IncidentItem, rows_of
from torchtriage.web.pages.rendering import render
from torchtriage.web.pages.urls import address, value

router = APIRouter()
_BATCH_SIZE = 50
_GRADES = ("", "right", "wrong", "unknown", "waiting")


@dataclass(frozen=True, slots=True)
class DecisionLine:
    """A decision with its text in the reader's language, and its incident, or None if that was deleted."""

    record: DecisionRecord
    what: str
    reason: str
    about: IncidentItem | None


@dataclass(frozen=True, slots=True)
class DecisionsPage:
    """`scores` has the score of each action, based on the latest `latest` decisions. `grades` are links to the
    decisions with one grade; `older` is a URL. `enforced`: decisions are meant to be carried out."""

    items: tuple[DecisionLine, ...]
    scores: tuple[Score, ...]
    latest: int
    grades: tuple[Choice, ...]
    older: str | None
    policy: str
    enforced: bool
    json: str


@router.get("/decisions")
def show(request: Request, service: ServiceDep) -> Response:
    lang, asked = language(request), value(request, "grade")
    grade = asked if asked in _GRADES else ""
    wanted = DecisionFilter(grade=grade or None)
    found = decisions.list_decisions(service, wanted, _BATCH_SIZE, value(request, "cursor") or None)
    rows = rows_of(request, service, [record.incident for record in found.items if record.incident])
    scores = tuple(score for score in decisions.score(service) if score.count)
    page = DecisionsPage(
        items=tuple(
            DecisionLine(
                record, what(record.decision, lang), reason(record.decision, lang), rows.get(record.incident or "")
            )
            for record in sorted(found.items, key=lambda record: record.at, reverse=True)
        ),
        scores=scores,
        latest=min(SCORED, sum(score.count for score in scores)),
        grades=tuple(Choice(name or "all", address("/decisions", {"grade": name}), name == grade) for name in _GRADES),
        older=address("/decisions", {"grade": grade, "cursor": found.next}) if found.next else None,
        policy=service.policy.name,
        enforced=service.settings.decisions == "enforce",
        json=address("/api/v1/decisions", {"grade": grade, "lang": lang}),
    )
    return render(request, "decisions.html", page)
