"""/api/v1/incidents: submit, list, read, compare and delete incidents."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Query, Request, Response
from pydantic import ValidationError
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Send
from starlette.types import Scope as ScopeOfRequest

from torchtriage.domain.access import Scope
from torchtriage.domain.incident import Feedback, Incident
from torchtriage.services import incidents
from torchtriage.services.accept import accept_later
from torchtriage.services.compare_runs import compare_runs
from torchtriage.services.run_summaries import since_good
from torchtriage.services.service import Service
from torchtriage.web.api.request_body import with_uploads
from torchtriage.web.api.request_models import BriefQuery, FeedbackBody, IncidentsQuery, LogQuery, SubmitQuery
from torchtriage.web.api.response_models import (
    ComparisonForm,
    IncidentForm,
    IncidentsForm,
    LinesForm,
    OneIncidentForm,
    RepeatForm,
    page_of,
)
from torchtriage.web.api.run_summaries import since_good_form
from torchtriage.web.authentication import Reader, Submitter, Writer, submitting
from torchtriage.web.dependencies import IntakeDep, ServiceDep, intake_of, service_of
from torchtriage.web.errors import error_responses
from torchtriage.web.incident_brief import MarkdownAnswer, brief_of
from torchtriage.web.json_responses import Answer
from torchtriage.web.security import refuse_cross_site

router = APIRouter(prefix="/api/v1/incidents", tags=["incidents"])

_BETWEEN_LOOKS = 0.5  # seconds between two checks of a run whose nodes report separately
_QUERY = "torchtriage_query"  # key in the scope of a request
_FILE = {"type": "string", "format": "binary"}
BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The log: text, gzip, zstd or tar; several files as a form or as one archive. "
        "Any other Content-Type is read as text.",
        "content": {
            "text/plain": {"schema": {"type": "string"}},
            "application/gzip": {"schema": _FILE},
            "application/zstd": {"schema": _FILE},
            "application/octet-stream": {"schema": _FILE},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {"log": {"type": "array", "items": _FILE}},
                    "required": ["log"],
                }
            },
        },
    }
}
BODY_ERRORS = (400, 403, 408, 413, 415, 422)
_FORM = {"model": IncidentForm}
_PLACE = {"Location": {"schema": {"type": "string"}, "description": "URL of the incident"}}


@router.post(
    "",
    status_code=201,
    openapi_extra=BODY,
    responses={
        200: {
            "model": IncidentForm | RepeatForm,
            "description": "The same log of the same job and attempt was submitted before",
            "headers": _PLACE,
        },
        201: _FORM | {"description": "Stored and triaged", "headers": _PLACE},
        202: _FORM | {"description": "Stored; the triage is still running", "headers": _PLACE},
        **error_responses(*BODY_ERRORS),
    },
)
async def submit(
    request: Request, query: Annotated[SubmitQuery, Query()], service: ServiceDep, intake: IntakeDep, caller: Submitter
) -> Response:
    """Submit a failed run. The answer is sent after the log is stored durably. If the incident already exists, a token
    without the scope `read` gets only `id` and `state`."""
    take = partial(accept_later, service, query.job())
    taken = await with_uploads(request, intake, service.settings.max_log_bytes, take)
    accepted = await asyncio.shield(asyncio.wrap_future(taken))  # the log is stored even if the client disconnects
    incident = await after_all_nodes(service, accepted.incident, query.wait)
    status = 200 if not accepted.new else 201 if incident.state.final else 202
    body = incident.as_dict(service.settings.base_url)
    # The incident contains logs of others.
    if (not accepted.new or incident.job.reports) and not caller.may(Scope.READ):
        body = {"id": incident.id, "state": incident.state}
    return Answer(body, status, {"Location": f"/api/v1/incidents/{incident.id}"})


class SubmitRoute(BaseRoute):
    """The route for submitting logs, as the server runs it. FastAPI's own handling of the parameters would take longer
    than everything else in the event loop for a log. FastAPI's route still documents it, and answers if the query is
    invalid."""

    path = router.prefix
    methods = frozenset({"POST"})

    def matches(self, scope: ScopeOfRequest) -> tuple[Match, ScopeOfRequest]:
        if scope["type"] != "http" or scope["method"] not in self.methods or scope["path"] != self.path:
            return Match.NONE, {}
        try:
            return Match.FULL, {_QUERY: SubmitQuery.of(scope["query_string"])}
        except ValidationError:
            return Match.NONE, {}

    async def handle(self, scope: ScopeOfRequest, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        await refuse_cross_site(request)
        caller = await submitting(request)
        response = await submit(request, scope[_QUERY], await service_of(request), await intake_of(request), caller)
        await response(scope, receive, send)


@router.get("", responses={200: {"model": IncidentsForm}, **error_responses(400, 422)})
def list_incidents(query: Annotated[IncidentsQuery, Query()], service: ServiceDep, _: Reader) -> Response:
    """List incidents, newest first."""
    page = incidents.list_incidents(service, query.wanted(), query.limit, query.cursor)
    return Answer(page_of(page, service.settings.base_url))


@router.get("/{incident}", responses={200: {"model": OneIncidentForm}, **error_responses(404, 422)})
def read_incident(incident: str, service: ServiceDep, _: Reader) -> Response:
    """Read one incident with its verdict, and what changed since the last successful run of its job."""
    found = incidents.read_incident(service, incident)
    changed = since_good_form(since_good(service, found))
    return Answer(found.as_dict(service.settings.base_url) | {"since_good": changed})


@router.get("/{incident}/log", responses={200: {"model": LinesForm}, **error_responses(404, 422)})
def read_log(incident: str, query: Annotated[LogQuery, Query()], service: ServiceDep, _: Reader) -> Response:
    """Read some lines of the log."""
    found = incidents.read_incident(service, incident)
    file, lines = incidents.read_log(service, found, query.start, query.lines, query.file)
    after = query.start + len(lines)
    return Answer(
        {
            "file": file.name,
            "total": file.lines,
            "lines": [{"line": line.line, "text": line.text, "cut": line.cut} for line in lines],
            "next": after if lines and after <= file.lines else None,
        }
    )


@router.get(
    "/{incident}/brief",
    response_class=Response,
    responses={
        200: {"content": {"text/markdown": {"schema": {"type": "string"}}}, "description": "The brief, in Markdown"},
        **error_responses(404, 409, 422),
    },
)
def read_brief(incident: str, query: Annotated[BriefQuery, Query()], service: ServiceDep, _: Reader) -> Response:
    """Read the brief: what you need to judge the log, in few tokens. It contains the verdict, facts, the evidence with
    the lines around it, the first failure of each group of ranks, and the last actions of ranks. Known kinds of secrets
    are removed."""
    return MarkdownAnswer(brief_of(service, incident, query.lang, query.tokens).text)


@router.get(
    "/{incident}/compare/{before}", responses={200: {"model": ComparisonForm}, **error_responses(404, 409, 422)}
)
def compare(incident: str, before: str, service: ServiceDep, _: Reader) -> Response:
    """Compare two runs: what changed from the run of incident `before` to this one. Compares versions, hosts, options
    and other settings in the logs, the time per step, and finds new forms of lines before the failure."""
    earlier, now, comparison = compare_runs(service, before, incident)
    return Answer({"before": earlier.id, "now": now.id, **comparison.to_json()})


@router.delete(
    "/{incident}", status_code=204, responses={204: {"description": "Deleted"}, **error_responses(403, 404, 422)}
)
def forget_incident(incident: str, service: ServiceDep, caller: Writer) -> Response:
    """Delete an incident, and its log if no other incident has the same one."""
    incidents.forget_incident(service, incident, caller.name)
    return Response(status_code=204)


@router.post("/{incident}/feedback", responses={200: _FORM, **error_responses(400, 403, 404, 413, 422)})
def say(incident: str, said: FeedbackBody, service: ServiceDep, caller: Writer) -> Response:
    """Say whether the verdict was right, and what it should have been."""
    feedback = Feedback(said.verdict, caller.name, datetime.now(UTC), said.entry, said.note)
    return Answer(incidents.give_feedback(service, incident, feedback).as_dict(service.settings.base_url))


async def after_all_nodes(service: Service, incident: Incident, seconds: float) -> Incident:
    """Returns the incident after its triage, or as it is after `seconds`. If the nodes of the run report separately,
    waits for all of them and checks repeatedly, because each report starts a new triage."""
    if incident.job.nodes is None:
        return await after_triage(service, incident, seconds)
    until = time.monotonic() + seconds
    while (incident.job.awaits_nodes or not incident.state.final) and (left := until - time.monotonic()) > 0:
        await asyncio.sleep(min(_BETWEEN_LOOKS, left))
        incident = await to_thread.run_sync(incidents.read_incident, service, incident.id)
    return incident


async def after_triage(service: Service, incident: Incident, seconds: float) -> Incident:
    """Returns the incident after its triage, or as it is after `seconds`."""
    if seconds <= 0 or incident.state.final:
        return incident
    future = service.queue.find(incident.id)
    if future is not None:
        await asyncio.wait([asyncio.wrap_future(future)], timeout=seconds)
    return await to_thread.run_sync(incidents.read_incident, service, incident.id)
