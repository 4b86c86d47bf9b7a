"""`/decisions`: decisions about failed attempts, how they turned out, and their score."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from torchtriage.answer.localized_verdict import title_of
from torchtriage.decision.wording import reason, what
from torchtriage.domain.decision import ACTIONS, DecisionAction, DecisionRecord, Score
from torchtriage.domain.entry import Language
from torchtriage.services import decisions
from torchtriage.services.service import Service
from torchtriage.storage.decisions import SCORED, DecisionFilter
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.pages.groups import Choice
from torchtriage.web.pages.language import language
from torchtriage.web.pages.list_items import IncidentItem, rows_of
from torchtriage.web.pages.rendering import render
from torchtriage.web.pages.urls import address, value

router = APIRouter()
_BATCH_SIZE = 50
_ACTIONS: dict[str, DecisionAction] = {name: name for name in ACTIONS}
_GRADES = ("", "right", "wrong", "unknown", "waiting")


@dataclass(frozen=True, slots=True)
class DecisionLine:
    """A decision with its text in the reader's language, and its incident, or None if that was deleted. `title` is that
    of the cause."""

    record: DecisionRecord
    what: str
    reason: str
    title: str | None
    about: IncidentItem | None


@dataclass(frozen=True, slots=True)
class DecisionsPage:
    """`scores` has the score of each action, based on the latest `latest` decisions. `grades` are links to the
    decisions with one grade, `counts` the URLs of those that a score counts, by action and grade; `action` is the only
    action that is listed, if any, and `all_actions` the URL without it. `older` is a URL. `enforced`: decisions are
    meant to be carried out."""

    items: tuple[DecisionLine, ...]
    scores: tuple[Score, ...]
    latest: int
    grades: tuple[Choice, ...]
    counts: dict[tuple[str, str], str]
    action: str
    all_actions: str
    older: str | None
    policy: str
    enforced: bool
    json: str


@router.get("/decisions")
def show(request: Request, service: ServiceDep) -> Response:
    lang, asked = language(request), value(request, "grade")
    grade = asked if asked in _GRADES else ""
    action = value(request, "action")
    action = action if action in _ACTIONS else ""
    wanted = DecisionFilter(action=_ACTIONS.get(action), grade=grade or None)
    found = decisions.list_decisions(service, wanted, _BATCH_SIZE, value(request, "cursor") or None)
    rows = rows_of(request, service, [record.incident for record in found.items if record.incident])
    scores = tuple(score for score in decisions.score(service) if score.count)
    page = DecisionsPage(
        items=tuple(
            _line(record, rows.get(record.incident or ""), service, lang)
            for record in sorted(found.items, key=lambda record: record.at, reverse=True)
        ),
        scores=scores,
        latest=min(SCORED, sum(score.count for score in scores)),
        grades=tuple(Choice(name or "all", _listed(action, name), name == grade) for name in _GRADES),
        counts={(score.action, name): _listed(score.action, name) for score in scores for name in _GRADES},
        action=action,
        all_actions=_listed("", grade),
        older=address("/decisions", {"action": action, "grade": grade, "cursor": found.next}) if found.next else None,
        policy=service.policy.name,
        enforced=service.settings.decisions == "enforce",
        json=address("/api/v1/decisions", {"action": action, "grade": grade, "lang": lang}),
    )
    return render(request, "decisions.html", page)


def _line(record: DecisionRecord, about: IncidentItem | None, service: Service, lang: Language) -> DecisionLine:
    title = title_of(record.decision.attempt.entry, service.knowledge, lang) or (about.title if about else None)
    return DecisionLine(
        record, what(record.decision, lang), reason(record.decision, lang, titled=title is not None), title, about
    )


def _listed(action: str, grade: str) -> str:
    """Returns the URL of the decisions with this action and grade; each may be empty."""
    return address("/decisions", {"action": action, "grade": grade}) + "#list"
