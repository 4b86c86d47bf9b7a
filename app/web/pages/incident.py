"""`/incidents/{id}`: what failed, where, why, what to do, and the log that shows it."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from app.domain.entry import KnowledgeBase, Language
from app.domain.incident import Incident
from app.domain.verdict import Verdict
from app.services.incidents import read_incident
from app.services.service import Service
from app.web.deps import ServiceDep
from app.web.pages.language import language
from app.web.pages.log_piece import LogPiece, Wanted, log_piece
from app.web.pages.rendering import render
from app.web.pages.told_verdict import title_of, told_verdict

router = APIRouter()


@dataclass(frozen=True, slots=True)
class IncidentPage:
    """`titles` are those of the entries that the verdict names and the knowledge base still has."""

    incident: Incident
    verdict: Verdict | None
    log: LogPiece
    titles: dict[str, str]
    job: dict[str, str]
    job_url: str | None


@router.get("/incidents/{incident_id}")
def incident(request: Request, service: ServiceDep, incident_id: str) -> Response:
    wanted = Wanted(
        file=request.query_params.get("file"), first=_number(request, "from"), around=_number(request, "line")
    )
    return render(request, "incident.html", incident_page(service, incident_id, wanted, language(request)))


def incident_page(service: Service, incident_id: str, wanted: Wanted, lang: Language) -> IncidentPage:
    """Raises NotFound."""
    found = read_incident(service, incident_id)
    verdict = told_verdict(found.verdict, service.knowledge, lang) if found.verdict else None
    url = found.job.url
    return IncidentPage(
        incident=found,
        verdict=verdict,
        log=log_piece(service, found, verdict, wanted),
        titles=_titles(verdict, service.knowledge, lang) if verdict else {},
        job={name: str(value) for name, value in found.job.as_dict().items() if name not in ("labels", "url")},
        job_url=url if url and url.startswith(("https://", "http://")) else None,
    )


def _titles(verdict: Verdict, knowledge: KnowledgeBase, lang: Language) -> dict[str, str]:
    root = verdict.root_cause
    named = [root.entry if root else None, *(cascade.entry for cascade in verdict.cascades)]
    named += [cascade.because_of for cascade in verdict.cascades]
    named += [attempt.entry for attempt in verdict.attempts]
    named += [run.entry for run in verdict.earlier_runs]
    named += [candidate.entry for candidate in verdict.candidates]
    known = {entry for entry in named if entry and entry in knowledge.entries}
    return {entry: title_of(entry, knowledge, lang) or entry for entry in known}


def _number(request: Request, name: str) -> int | None:
    asked = request.query_params.get(name, "")
    return int(asked) if asked.isascii() and asked.isdecimal() and len(asked) <= 15 else None
