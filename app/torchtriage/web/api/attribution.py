"""`/logs`: the interface of the attribution service in NVIDIA's resiliency extension, answered with our decisions.

`ft_launcher --ft-attribution-endpoint http://HOST:PORT` calls it. See docs/nvrx.md.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Any, Literal

from anyio import to_thread
from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field, StrictInt

from torchtriage.decision.wording import decision_json, what
from torchtriage.domain.incident import Incident
from torchtriage.services.attribution import Named, checked, recommendation
from torchtriage.services.decisions import decide_about
from torchtriage.services.incidents import read_incident
from torchtriage.services.service import Service
from torchtriage.web.api.incidents import after_triage
from torchtriage.web.authentication import Reader, Submitter
from torchtriage.web.dependencies import NamedLogsDep, ServiceDep
from torchtriage.web.errors import error_responses
from torchtriage.web.json_responses import Answer

router = APIRouter(tags=["launcher"])

_SOURCE = "torchtriage"
_WAIT = 50  # seconds; NVIDIA's client gives up after 60
_Path = Annotated[str, Field(min_length=1, max_length=4096)]
_Word = Annotated[str, Field(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]


class LogBody(BaseModel):
    """A log that a launcher writes. `analysis_intent` `terminal` means that the attempt has ended."""

    log_path: _Path
    user: _Word | None = None
    job_id: _Word | None = None
    cycle_id: Annotated[StrictInt, Field(ge=0, le=2**31 - 1)] | None = None
    analysis_intent: Literal["track_only", "progressive", "terminal"] | None = None


class SubmittedForm(BaseModel):
    """`mode` is `PENDING` while the file does not exist."""

    submitted: bool
    normalized_path: str
    mode: Literal["PENDING", "SINGLE"]
    logs_dir: None = None
    sched_restarts: int = 0
    files_analyzed: None = None


class RecommendationForm(BaseModel):
    """`UNKNOWN` means that the launcher must do nothing: a dry run, or a decision to wait."""

    action: Literal["STOP", "RESTART", "CONTINUE", "UNKNOWN"]
    reason: str
    source: str


class ResultForm(BaseModel):
    """`result.decision` is the decision in the form of POST /api/v1/decision; null until `status` is `completed`."""

    status: Literal["completed", "in_flight", "pending"]
    recommendation: RecommendationForm
    result: dict[str, Any]
    wl_restart: int
    wl_restart_count: None = None


@router.post("/logs", responses={200: {"model": SubmittedForm}, **error_responses(400, 403, 404, 413, 422)})
async def submit(body: LogBody, service: ServiceDep, logs: NamedLogsDep, caller: Submitter, _: Reader) -> Response:
    """Submit the path of a log that NVIDIA's launcher writes. The log must be on a file system that this service can
    read."""
    path = await to_thread.run_sync(checked, service, body.log_path)
    logs.put(Named(path, body.user or None, body.job_id or None, body.cycle_id))
    there = await to_thread.run_sync(path.is_file)
    if there and body.analysis_intent == "terminal":
        await to_thread.run_sync(logs.take, service, path)
    form = SubmittedForm(submitted=True, normalized_path=str(path), mode="SINGLE" if there else "PENDING")
    return Answer(form.model_dump())


@router.get("/logs", responses={200: {"model": ResultForm}, **error_responses(400, 403, 404, 409, 413, 422)})
async def result(
    log_path: Annotated[_Path, Query()],
    service: ServiceDep,
    logs: NamedLogsDep,
    caller: Submitter,
    _: Reader,
    wl_restart: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    file: Annotated[_Path | None, Query(description="Not used: one log is one attempt")] = None,
    wait: Annotated[bool, Query(description="Whether to wait for the decision")] = True,
) -> Response:
    """Decide what NVIDIA's launcher must do after a failed attempt."""
    path = await to_thread.run_sync(checked, service, log_path)
    taking = await to_thread.run_sync(logs.take, service, path) if wait else logs.taken(path)
    if taking is None:
        return Answer(_unfinished("pending", wl_restart))
    accepted = await asyncio.shield(asyncio.wrap_future(taking))
    known = await to_thread.run_sync(read_incident, service, accepted.incident.id)
    incident = await after_triage(service, known, _WAIT if wait else 0)
    if not incident.state.final:
        return Answer(_unfinished("in_flight", wl_restart))
    return Answer(await to_thread.run_sync(partial(_completed, service, incident, caller.name, wl_restart)))


def _completed(service: Service, incident: Incident, by: str, wl_restart: int) -> dict[str, Any]:
    record = decide_about(service, incident.id, by)
    decision = decision_json(record.decision, "en")
    action = recommendation(record)
    reason = (
        decision["reason"]
        if record.mode == "enforce"
        else f"dry run, {what(record.decision, 'en')}: {decision['reason']}"
    )
    return _answer("completed", action, reason, wl_restart) | {
        "result": {
            "module": _SOURCE,
            # Older launchers read only the state, which has no value for "do nothing".
            "state": action if action in ("STOP", "RESTART") else "CONTINUE",
            "result_id": f"{service.settings.base_url}/incidents/{incident.id}",
            "result": [],
            "recommendation": {"action": action, "source": _SOURCE},
            "decision": decision,
        }
    }


def _unfinished(status: str, wl_restart: int) -> dict[str, Any]:
    content: dict[str, Any] = {"module": _SOURCE, "state": "CONTINUE", "result": [], "decision": None}
    return _answer(status, "UNKNOWN", "", wl_restart) | {"result": content}


def _answer(status: str, action: str, reason: str, wl_restart: int) -> dict[str, Any]:
    recommended = {"action": action, "reason": reason, "source": _SOURCE}
    return {"status": status, "recommendation": recommended, "wl_restart": wl_restart, "wl_restart_count": None}
