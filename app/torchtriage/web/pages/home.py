"""`/`: the form to submit a log (paste, file or drop), and the newest incidents."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path

from anyio import to_thread
from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from torchtriage.domain.incident import IncidentFilter, Job
from torchtriage.errors import BadInput
from torchtriage.services.accept import accept
from torchtriage.services.incidents import list_summaries
from torchtriage.services.service import Service
from torchtriage.web.api.request_body import with_uploads
from torchtriage.web.authentication import Submitter
from torchtriage.web.dependencies import IntakeDep, ServiceDep
from torchtriage.web.pages.error_page import wants_page
from torchtriage.web.pages.language import language
from torchtriage.web.pages.list_items import IncidentItem, incident_items
from torchtriage.web.pages.rendering import render

router = APIRouter()
_NEWEST = 8
_WAIT = 4.0  # seconds; most logs are triaged by then, and the incident's page waits for the others
_FIELDS = ("log", "pasted")
_SAMPLES = Path(__file__).resolve().parents[1] / "samples"
SAMPLES = ("memory", "stuck", "hardware", "killed")  # made by scripts/sample_logs.py


@dataclass(frozen=True, slots=True)
class HomePage:
    """`problem` says why the submitted log was rejected. `entries` is the number of entries in the knowledge base.
    `sample` is the sample log in the form."""

    newest: tuple[IncidentItem, ...]
    entries: int
    limit: int
    base_url: str
    problem: str | None = None
    samples: tuple[str, ...] = ()
    sample: str | None = None
    sample_text: str | None = None


@router.get("/")
def home(request: Request, service: ServiceDep) -> Response:
    asked = request.query_params.get("sample")
    return render(request, "home.html", _page(request, service, sample=asked if asked in SAMPLES else None))


@router.post("/")
async def hand_in(request: Request, service: ServiceDep, intake: IntakeDep, _: Submitter) -> Response:
    """Stores the log of the form and redirects to its incident. An error is shown above the form."""
    try:
        accepted = await with_uploads(
            request, intake, service.settings.max_log_bytes, partial(accept, service, Job()), fields=_FIELDS
        )
    except BadInput as error:
        if not wants_page(request):
            raise
        page = await to_thread.run_sync(_page, request, service, error.message)
        return await to_thread.run_sync(render, request, "home.html", page, error.status)
    future = service.queue.find(accepted.incident_id)
    if future is not None:
        await asyncio.wait([asyncio.wrap_future(future)], timeout=_WAIT)
    return RedirectResponse(f"/incidents/{accepted.incident_id}", HTTPStatus.SEE_OTHER)


def _page(request: Request, service: Service, problem: str | None = None, sample: str | None = None) -> HomePage:
    newest = list_summaries(service, IncidentFilter(), limit=_NEWEST).items
    return HomePage(
        newest=incident_items(newest, service.knowledge, language(request)),
        entries=len(service.knowledge.entries),
        limit=service.settings.max_log_bytes,
        base_url=service.settings.base_url,
        problem=problem,
        samples=SAMPLES,
        sample=sample,
        sample_text=(_SAMPLES / f"{sample}.log").read_text("utf-8") if sample else None,
    )
