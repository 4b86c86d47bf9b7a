"""`/retriage`: what the current knowledge base would change in stored verdicts, and the button to apply it."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from starlette.responses import RedirectResponse

from torchtriage.answer.localized_verdict import title_of
from torchtriage.errors import BadInput
from torchtriage.services.retriage_job import Progress
from torchtriage.web.authentication import Admin, Writer
from torchtriage.web.dependencies import RetriageJobsDep, ServiceDep
from torchtriage.web.pages.language import language
from torchtriage.web.pages.list_items import IncidentItem, rows_of
from torchtriage.web.pages.rendering import render

router = APIRouter()


@dataclass(frozen=True, slots=True)
class RetriagePage:
    """The progress of the retriage. `older` is the number of incidents whose verdict is based on other knowledge.
    `left` is the number of differences and failures that are not listed. `rows` are the listed incidents that still
    exist, and `titles` the titles of their entries."""

    progress: Progress
    older: int
    left: int
    rows: dict[str, IncidentItem]
    titles: dict[str, str]


@router.get("/retriage")
def retriage(request: Request, service: ServiceDep, retriage_jobs: RetriageJobsDep) -> Response:
    progress = retriage_jobs.progress
    left = progress.found + progress.failed - len(progress.differences)
    rows = rows_of(request, service, [one.incident_id for one in progress.differences])
    keys = (key for one in progress.differences for key in (one.before, one.after) if key)
    named = {entry for _, entry in keys if entry}
    titles = {entry: title_of(entry, service.knowledge, language(request)) or entry for entry in named}
    titles = {entry: title for entry, title in titles.items() if title != entry}  # without those that are gone
    return render(request, "retriage.html", RetriagePage(progress, retriage_jobs.older, left, rows, titles))


@router.post("/retriage/all")
def begin(retriage_jobs: RetriageJobsDep, caller: Admin) -> Response:
    """Starts a preview for every incident whose verdict is from older knowledge."""
    retriage_jobs.start_preview(caller.name)
    return _there()


@router.post("/retriage")
def end(retriage_jobs: RetriageJobsDep, caller: Writer, action: Annotated[str, Form()] = "") -> Response:
    """`action` is apply (saves the changes), discard, or again (repeats the preview for the same incidents)."""
    match action:
        case "apply":
            retriage_jobs.apply(caller.name)
        case "discard":
            retriage_jobs.discard()
        case "again":
            retriage_jobs.preview_again(caller.name)
        case _:
            raise BadInput("the action must be apply, discard or again")
    return _there()


def _there() -> Response:
    return RedirectResponse("/retriage", HTTPStatus.SEE_OTHER)
