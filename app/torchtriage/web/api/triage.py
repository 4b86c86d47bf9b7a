"""/api/v1/triage: triages a log without storing it."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from torchtriage.domain.entry import Language
from torchtriage.domain.verdict import Verdict
from torchtriage.services.triage_upload import spool, triage_spooled
from torchtriage.web.api.incidents import BODY, BODY_ERRORS
from torchtriage.web.api.request_body import with_uploads
from torchtriage.web.authentication import Submitter
from torchtriage.web.dependencies import IntakeDep, ServiceDep
from torchtriage.web.errors import error_responses
from torchtriage.web.json_responses import Answer

router = APIRouter(prefix="/api/v1", tags=["triage"])


@router.post("/triage", openapi_extra=BODY, responses={200: {"model": Verdict}, **error_responses(*BODY_ERRORS)})
async def triage(
    request: Request,
    service: ServiceDep,
    intake: IntakeDep,
    _: Submitter,
    lang: Annotated[Language, Query(description="Language of causes and fixes")] = "en",
) -> Response:
    """Triage a log without storing it."""
    spooling = partial(spool, service, lang=lang)
    order, folder = await with_uploads(request, intake, service.settings.max_log_bytes, spooling)
    # Uses another thread pool than the one that receives logs, because this call waits for a free process.
    return Answer((await asyncio.to_thread(triage_spooled, service, order, folder)).as_dict())
