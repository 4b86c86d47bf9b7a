"""/healthz and /readyz"""

from __future__ import annotations

from fastapi import APIRouter, Response
from pydantic import BaseModel

from app.web.answers import Answer
from app.web.deps import ServiceDep
from app.web.errors import told

router = APIRouter(tags=["health"])


class Health(BaseModel):
    status: str


@router.get("/healthz", responses={200: {"model": Health}, **told(guarded=False)})
async def alive() -> Response:
    """The process answers; whatever else is wrong, restarting it would not help."""
    return Answer({"status": "ok"})


@router.get("/readyz", responses={200: {"model": Health}, **told(guarded=False)})
def ready(service: ServiceDep) -> Response:
    """Logs can be taken: the database answers and the log store can be written."""
    service.database.check()
    service.blobs.check()
    return Answer({"status": "ok"})
