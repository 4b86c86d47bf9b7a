"""/api/v1/triage"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from app.domain.entry import Language
from app.domain.verdict import Verdict
from app.reading.unpack import Upload
from app.services.triage_upload import triage_upload
from app.web.access import Submitter
from app.web.answers import Answer
from app.web.api.body import with_uploads
from app.web.api.incidents import BODY, BODY_ERRORS
from app.web.deps import ServiceDep
from app.web.errors import told

router = APIRouter(prefix="/api/v1", tags=["triage"])


@router.post("/triage", openapi_extra=BODY, responses={200: {"model": Verdict}, **told(*BODY_ERRORS)})
async def triage(
    request: Request,
    service: ServiceDep,
    _: Submitter,
    lang: Annotated[Language, Query(description="Of causes and fixes")] = "en",
) -> Response:
    """The verdict for a log, of which nothing is kept."""

    def work(uploads: Iterator[Upload]) -> dict[str, Any]:
        return triage_upload(service, uploads, lang)

    verdict = await with_uploads(request, service.settings.max_log_bytes, work)
    return Answer(verdict)
