"""`/incidents/{id}`: what failed, where, why, what to do, and the evidence; also feedback, and why another entry did
not match."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Literal

from anyio import to_thread
from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from torchtriage.answer.comparison_wording import sentence
from torchtriage.answer.explain_match import Why
from torchtriage.answer.first_screen import first_screen
from torchtriage.answer.inconclusive_answer import question_of
from torchtriage.answer.localized_verdict import localized, title_of
from torchtriage.domain.entry import KnowledgeBase, Language
from torchtriage.domain.explanation import ExplanationState
from torchtriage.domain.first_screen import FirstScreen
from torchtriage.domain.group import Group, GroupChange
from torchtriage.domain.incident import Feedback, Incident, IncidentFilter
from torchtriage.domain.run_summary import SinceGood
from torchtriage.domain.verdict import Evidence, RunFacts, Verdict
from torchtriage.errors import BadInput
from torchtriage.services.compare_runs import last_good
from torchtriage.services.explain_match import explain_mismatch
from torchtriage.services.explanation import explanation_of, queue_question
from torchtriage.services.groups import change_group, notes_beside, read_group
from torchtriage.services.incident_links import Link, links_of
from torchtriage.services.incidents import (
    forget_incident,
    give_feedback,
    list_incidents,
    read_incident,
    undo_feedback_of,
)
from torchtriage.services.run_summaries import since_good
from torchtriage.services.service import Service
from torchtriage.web.authentication import Writer
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.pages.cascade_tree import Branch, cascade_tree
from torchtriage.web.pages.form_data import read_form
from torchtriage.web.pages.incident_rows import AttemptRow, EvidenceRow, attempt_rows, evidence_rows
from torchtriage.web.pages.language import language
from torchtriage.web.pages.list_items import IncidentItem, incident_items
from torchtriage.web.pages.log_rows import key_lines
from torchtriage.web.pages.log_window import LogPiece, excerpt, no_lines
from torchtriage.web.pages.markdown import markdown
from torchtriage.web.pages.rendering import render
from torchtriage.web.pages.run_timeline import RunTimeline, run_timeline
from torchtriage.web.pages.urls import moment
from torchtriage.web.pages.wait_diagram import WaitDiagram, wait_diagram

router = APIRouter()
_SIMILAR = 5  # other incidents of the group that are shown
_NOTES = 5  # notes to other incidents of the group
_MAX_NOTE_LENGTH = 5000


@dataclass(frozen=True, slots=True)
class IncidentPage:
    """`titles` are the titles of the entries in the verdict that the knowledge base still has. `similar` are other
    incidents of the group. `notes` are comments on any of them, each with its incident's id."""

    incident: Incident
    verdict: Verdict | None
    screen: FirstScreen | None
    question: str | None  # that somebody asked in place of a log
    log: LogPiece
    titles: dict[str, str]
    job: dict[str, str]
    job_url: str | None
    address: str
    evidence: tuple[EvidenceRow, ...]
    timeline: RunTimeline | None
    waits: WaitDiagram | None
    tree: tuple[Branch, ...]
    attempts: tuple[AttemptRow, ...]
    group: Group | None
    good: bool  # there is an earlier run of the same job name that shows no failure
    since_good: SinceGood | None
    changed: tuple[str, ...]  # since then, in the reader's words
    similar: tuple[IncidentItem, ...]
    notes: tuple[tuple[str, Feedback], ...]
    said: bool
    undone: bool
    explanation: ExplanationState
    can_explain: bool
    links: tuple[Link, ...]  # to where else the run stands
    log_opens: Evidence | None  # the line at which the log opens
    seconds: float | None  # that the log covers


@dataclass(frozen=True, slots=True)
class WhyPage:
    """`why` is None if the log is too long to be read during a request."""

    incident: Incident
    log: LogPiece
    entry: str
    title: str
    why: Why | None


@router.get("/incidents/{incident_id}.md")
def as_markdown(request: Request, service: ServiceDep, incident_id: str) -> Response:
    """Returns the incident as Markdown, for an issue or a chat. Secrets are removed."""
    page, lang = incident_page(service, incident_id, language(request)), language(request)
    text = markdown(page.incident, page.verdict, page.address, lang, page.titles)
    return Response(text, media_type="text/markdown")


@router.get("/incidents/{incident_id}")
def incident(request: Request, service: ServiceDep, incident_id: str) -> Response:
    page = incident_page(service, incident_id, language(request))
    asked = request.query_params
    return render(request, "incident.html", replace(page, said=asked.get("said") == "1", undone="undone" in asked))


@router.get("/incidents/{incident_id}/why")
def why(request: Request, service: ServiceDep, incident_id: str) -> Response:
    """Shows why an entry did or did not match this log."""
    found, entry, lang = read_incident(service, incident_id), request.query_params.get("entry", ""), language(request)
    explanation = explain_mismatch(service, found, entry, lang)
    title = title_of(entry, service.knowledge, lang) or entry
    return render(request, "incident_why.html", WhyPage(found, no_lines(found), entry, title, explanation))


@router.post("/incidents/{incident_id}/feedback")
async def feedback(request: Request, service: ServiceDep, incident_id: str, caller: Writer) -> Response:
    """Stores a person's feedback on the verdict."""
    given = await read_form(request)
    said: Literal["right", "wrong"]
    match given.get("verdict"):
        case "right" | "wrong" as said:
            pass
        case _:
            raise BadInput("the verdict must be right or wrong")
    note = given.get("note", "")[:_MAX_NOTE_LENGTH] or None
    kept = Feedback(said, caller.name, datetime.now(UTC), given.get("entry") or None, note)
    await to_thread.run_sync(give_feedback, service, incident_id, kept)
    return RedirectResponse(f"/incidents/{incident_id}?said=1#feedback", HTTPStatus.SEE_OTHER)


@router.post("/incidents/{incident_id}/feedback/undo")
async def undo_feedback(request: Request, service: ServiceDep, incident_id: str, caller: Writer) -> Response:
    """Removes the feedback that the caller gave at the time in the form."""
    at = moment((await read_form(request)).get("at", ""))
    if at is None:
        raise BadInput("the form names no time")
    await to_thread.run_sync(undo_feedback_of, service, incident_id, caller.name, at)
    return RedirectResponse(f"/incidents/{incident_id}?undone=1#feedback", HTTPStatus.SEE_OTHER)


@router.post("/incidents/{incident_id}/explain")
def explain(request: Request, service: ServiceDep, incident_id: str, caller: Writer) -> Response:
    """Sends the question to the language model, in the reader's language."""
    queue_question(service, incident_id, language(request), caller.name)
    return RedirectResponse(f"/incidents/{incident_id}#explanation", HTTPStatus.SEE_OTHER)


@router.post("/incidents/{incident_id}/take")
def take(service: ServiceDep, incident_id: str, caller: Writer) -> Response:
    """Makes the caller the owner of the incident's group, so that nobody else investigates the same failure."""
    found = read_incident(service, incident_id)
    if found.group:
        change_group(service, found.group.id, GroupChange(owner=caller.name), caller.name)
    return RedirectResponse(f"/incidents/{incident_id}", HTTPStatus.SEE_OTHER)


@router.post("/incidents/{incident_id}/forget")
def forget(service: ServiceDep, incident_id: str, caller: Writer) -> Response:
    """Deletes the incident. The page asks first."""
    forget_incident(service, incident_id, caller.name)
    return RedirectResponse("/incidents", HTTPStatus.SEE_OTHER)


def incident_page(service: Service, incident_id: str, lang: Language) -> IncidentPage:
    """Returns the content of an incident's page. Raises NotFound."""
    found = read_incident(service, incident_id)
    verdict = localized(found.verdict, service.knowledge, lang) if found.verdict else None
    group = read_group(service, found.group.id) if found.group else None
    url = found.job.url
    changed = since_good(service, found) if verdict else None
    return IncidentPage(
        incident=found,
        verdict=verdict,
        screen=first_screen(verdict, lang) if verdict else None,
        question=question_of(verdict.answer) if verdict and verdict.answer else None,
        log=excerpt(service, found, verdict),
        titles=_titles(verdict, service.knowledge, lang) if verdict else {},
        job={
            name: str(value)
            for name, value in found.job.to_json().items()
            if name not in ("labels", "url", "provisional", "reports")
        }
        | ({"nodes": f"{found.job.reported_nodes} / {found.job.nodes}"} if found.job.nodes else {}),
        job_url=url if url and url.startswith(("https://", "http://")) else None,
        address=f"{service.settings.base_url}/incidents/{found.id}",
        evidence=evidence_rows(verdict.root_cause) if verdict and verdict.root_cause else (),
        timeline=run_timeline(verdict) if verdict else None,
        waits=wait_diagram(verdict) if verdict else None,
        tree=cascade_tree(verdict) if verdict else (),
        attempts=attempt_rows(verdict.attempts) if verdict else (),
        group=group,
        log_opens=next(iter(key_lines(verdict)), None),
        good=bool(verdict) and last_good(service, found) is not None,
        seconds=_seconds(verdict.run) if verdict else None,
        since_good=changed,
        changed=tuple(sentence(change, lang == "zh") for change in changed.changes) if changed else (),
        similar=incident_items(_others(service, found), service.knowledge, lang),
        notes=tuple(notes_beside(service, found, _NOTES)),
        said=False,
        undone=False,
        explanation=explanation_of(service, found.id),
        can_explain=bool(service.settings.llm_url),
        links=links_of(service.links, found, lang),
    )


def _others(service: Service, found: Incident) -> list[Incident]:
    if found.group is None or found.group.count < 2:
        return []
    listed = list_incidents(service, IncidentFilter(group=found.group.id), limit=_SIMILAR + 1)
    return [other for other in listed.items if other.id != found.id][:_SIMILAR]


def _titles(verdict: Verdict, knowledge: KnowledgeBase, lang: Language) -> dict[str, str]:
    root = verdict.root_cause
    named = [root.entry if root else None, *(cascade.entry for cascade in verdict.cascades)]
    named += [cascade.because_of for cascade in verdict.cascades]
    named += [attempt.entry for attempt in verdict.attempts]
    named += [run.entry for run in verdict.earlier_runs]
    named += [candidate.entry for candidate in verdict.candidates]
    named += [mark.entry for mark in verdict.timeline]
    known = {entry for entry in named if entry and entry in knowledge.entries}
    return {entry: title_of(entry, knowledge, lang) or entry for entry in known}


def _seconds(run: RunFacts) -> float | None:
    """Returns the seconds from the first to the last time in the log, or None if they are unknown or not in order."""
    try:
        passed = datetime.fromisoformat(run.ended or "") - datetime.fromisoformat(run.started or "")
    except (ValueError, TypeError):  # no time, or one of two with a zone
        return None
    return passed.total_seconds() if passed.total_seconds() > 0 else None
