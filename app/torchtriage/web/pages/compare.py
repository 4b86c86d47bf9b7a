"""`/incidents/{id}/compare`: what changed between another run and this one. The default is the last good run of the
job."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from fastapi import APIRouter, Request, Response

from torchtriage.answer.comparison_wording import NAMES, WORDS
from torchtriage.domain.incident import Incident
from torchtriage.domain.run_comparison import Change, ChangeKind, RunComparison
from torchtriage.errors import DamagedLog, NotFound, NotTriaged, TriageError
from torchtriage.services.compare_runs import compare_runs, last_good
from torchtriage.services.incidents import read_incident
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.pages.language import language
from torchtriage.web.pages.list_items import IncidentItem, incident_items
from torchtriage.web.pages.log_window import LogPiece, no_lines
from torchtriage.web.pages.rendering import render
from torchtriage.web.pages.urls import value

router = APIRouter()


@dataclass(frozen=True, slots=True)
class ComparePage:
    """`asked` is the id that was typed for the other incident; `problem` says why it cannot be compared. `changes` are
    grouped by kind. `words` are the headings. `names` translates the names of changes that do not come from a log.
    `rows` show what happened in both runs."""

    incident: Incident
    other: Incident | None
    asked: str
    problem: TriageError | None
    comparison: RunComparison | None
    changes: tuple[tuple[ChangeKind, tuple[Change, ...]], ...]
    words: dict[str, str]
    names: dict[str, str]
    log: LogPiece
    rows: dict[str, IncidentItem]


@router.get("/incidents/{incident_id}/compare")
def compare(request: Request, service: ServiceDep, incident_id: str) -> Response:
    incident = read_incident(service, incident_id)
    asked = value(request, "with").lstrip("#") or last_good(service, incident) or ""
    other = comparison = problem = None
    if asked:
        try:
            other, _, comparison = compare_runs(service, asked, incident.id)
        except (NotFound, NotTriaged, DamagedLog) as error:
            problem = error
    changes = groupby(comparison.changes if comparison else (), key=lambda change: change.kind)
    chinese = language(request) == "zh"
    rows = incident_items([one for one in (other, incident) if one], service.knowledge, language(request))
    page = ComparePage(
        incident, other, asked, problem, comparison, tuple((kind, tuple(found)) for kind, found in changes),
        {name: pair[chinese] for name, pair in WORDS.items()}, {name: pair[chinese] for name, pair in NAMES.items()},
        no_lines(incident), {item.id: item for item in rows},
    )  # fmt: skip
    return render(request, "compare.html", page)
