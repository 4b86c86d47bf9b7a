"""/healthz and /readyz: liveness and readiness probes."""

from __future__ import annotations

import asyncio

from anyio import to_thread
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from torchtriage.errors import StorageUnavailable, TriageError
from torchtriage.services.service import Service
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.errors import error_responses
from torchtriage.web.json_responses import Answer

router = APIRouter(tags=["health"])
_TIMEOUT = 2.5  # seconds; the probe in deploy/kubernetes waits three


class NotReady(TriageError):
    """A worker loop of the service has not reported for too long."""

    status = 503
    code = "not_ready"


class Health(BaseModel):
    status: str


@router.get("/healthz", responses={200: {"model": Health}, **error_responses(guarded=False)})
async def alive() -> Response:
    """Liveness: the process answers. If it does not, restart it."""
    return Answer({"status": "ok"})


@router.get("/readyz", responses={200: {"model": Health}, **error_responses(guarded=False)})
async def ready(request: Request, service: ServiceDep) -> Response:
    """Readiness: logs can be accepted and triaged. Database and log store are writable; no worker loop is silent."""
    state = request.app.state
    # All callers share one check. If the database hangs, each check would block a thread.
    look: asyncio.Task[None] | None = getattr(state, "readiness", None)
    if look is None or look.done():
        look = state.readiness = asyncio.create_task(to_thread.run_sync(_check, service))
        # An error is raised in the callers that still wait.
        look.add_done_callback(lambda done: done.cancelled() or done.exception())
    done, _ = await asyncio.wait({look}, timeout=_TIMEOUT)
    if not done:
        raise StorageUnavailable("the database or the log store does not respond")
    look.result()
    return Answer({"status": "ok"})


def _check(service: Service) -> None:
    """Checks the database, the log store and the worker loops. Raises StorageUnavailable or NotReady."""
    service.database.check()
    service.blobs.check()
    missing = service.heartbeats.missing()
    if missing:
        silent = ", ".join(f"{loop} for {age:.0f} s" for loop, age in sorted(missing.items()))
        raise NotReady(f"no heartbeat: {silent}", loops={loop: round(age) for loop, age in missing.items()})
