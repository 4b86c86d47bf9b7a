"""/api/v1/triage"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.domain.entry import Language
from app.domain.verdict import Verdict
from app.services.triage_upload import spool, triage_spooled
from app.web.access import Submitter
from app.web.answers import Answer
from app.web.api.body import with_uploads
from app.web.api.incidents import BODY, BODY_ERRORS
from app.web.deps import IntakeDep, ServiceDep
from app.web.errors import told

router = APIRouter(prefix="/api/v1", tags=["triage"])


@router.post("/triage", openapi_extra=BODY, responses={200: {"model": Verdict}, **told(*BODY_ERRORS)})
async def triage(
    request: Request,
    service: ServiceDep,
    intake: IntakeDep,
    _: Submitter,
    lang: Annotated[Language, Query(description="Of causes and fixes")] = "en",
) -> Response:
    """The verdict for a log, of which nothing is kept."""
    spooling = partial(spool, service, lang=lang)
    order, folder = await with_uploads(request, intake, service.settings.max_log_bytes, spooling)
    # In another thread than those that take logs in, as this one waits for a process to be free.
    return Answer(await asyncio.to_thread(triage_spooled, service, order, folder))
