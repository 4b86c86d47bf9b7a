"""/api/v1/decision and /api/v1/decisions: what to do about failed attempts, and how earlier decisions turned out."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from torchtriage.decision.wording import record_json
from torchtriage.domain.byte_sizes import limit_text
from torchtriage.domain.decision import DecisionRecord
from torchtriage.domain.json_form import json_form
from torchtriage.errors import LogTooLarge
from torchtriage.services import decisions, incidents
from torchtriage.services.accept import accept_later
from torchtriage.services.service import Service
from torchtriage.storage.decisions import SCORED
from torchtriage.web.api.incidents import BODY, BODY_ERRORS, after_triage
from torchtriage.web.api.request_body import with_uploads
from torchtriage.web.api.request_models import DecideBody, DecideQuery, DecisionsQuery
from torchtriage.web.api.response_models import DecisionForm, DecisionsForm, ScoreForm
from torchtriage.web.authentication import Reader, Submitter
from torchtriage.web.dependencies import IntakeDep, ServiceDep
from torchtriage.web.errors import error_responses
from torchtriage.web.json_responses import Answer

router = APIRouter(prefix="/api/v1", tags=["decisions"])

_JSON = "application/json"
_MAX_BYTES = 2 << 20  # maximum bytes of a JSON body


def _inlined(schema: Any, named: dict[str, Any]) -> Any:
    """Returns the schema with its `$ref`s replaced, because the OpenAPI document contains only the schemas of FastAPI's
    own models."""
    if isinstance(schema, list):
        return [_inlined(one, named) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(named[schema["$ref"].rpartition("/")[2]], named)
    return {name: _inlined(one, named) for name, one in schema.items() if name != "$defs"}


_SCHEMA = DecideBody.model_json_schema()
_BODY: dict[str, Any] = {
    "requestBody": BODY["requestBody"]
    | {
        "description": "The log, which is stored as by POST /api/v1/incidents; or, in JSON, the id of an incident.",
        "content": {**BODY["requestBody"]["content"], _JSON: {"schema": _inlined(_SCHEMA, _SCHEMA["$defs"])}},
    }
}


@router.post(
    "/decision",
    openapi_extra=_BODY,
    responses={200: {"model": DecisionForm}, **error_responses(404, 409, *BODY_ERRORS)},
)
async def decide(
    request: Request,
    query: Annotated[DecideQuery, Query()],
    service: ServiceDep,
    intake: IntakeDep,
    caller: Submitter,
    _: Reader,
) -> Response:
    """Decide what to do about a failed attempt: stop, restart, restart-excluding, restart-from-checkpoint or wait. The
    decision is stored, and graded when the next attempt of the job is known. Answers 409 while the log has no verdict;
    ask again with the incident in `detail`."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() == _JSON:
        asked = _checked(await _json_body(request))
        incident = await to_thread.run_sync(incidents.read_incident, service, asked.incident)
        attempt, history, lang = asked.attempt, asked.earlier(), asked.lang
    else:
        take = partial(accept_later, service, query.job())
        taken = await with_uploads(request, intake, service.settings.max_log_bytes, take)
        incident = (await asyncio.shield(asyncio.wrap_future(taken))).incident
        attempt, history, lang = query.attempt, query.earlier(), query.lang
    incident = await after_triage(service, incident, query.wait)
    deciding = partial(decisions.decide_about, service, incident.id, caller.name, attempt, history)
    record = await to_thread.run_sync(deciding)
    return Answer(record_json(record, lang, service.settings.base_url))


@router.get("/decisions", responses={200: {"model": DecisionsForm}, **error_responses(400, 422)})
def list_decisions(query: Annotated[DecisionsQuery, Query()], service: ServiceDep, _: Reader) -> Response:
    """List decisions, latest first."""
    page = decisions.list_decisions(service, query.wanted(), query.limit, query.cursor)
    return Answer({"items": [_decision_form(service, query, record) for record in page.items], "next": page.next})


@router.get("/decisions/score", responses={200: {"model": ScoreForm}, **error_responses(422)})
def score(service: ServiceDep, _: Reader) -> Response:
    """Count how the latest decisions turned out, by action."""
    return Answer({"items": json_form(decisions.score(service)), "latest": SCORED})


def _decision_form(service: Service, query: DecisionsQuery, record: DecisionRecord) -> dict[str, Any]:
    return record_json(record, query.lang, service.settings.base_url)


async def _json_body(request: Request) -> Any:
    """Reads a JSON body. Raises LogTooLarge, RequestValidationError or ClientDisconnect."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BYTES:
            raise LogTooLarge(f"the JSON is larger than the limit of {limit_text(_MAX_BYTES)}", limit=_MAX_BYTES)
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestValidationError([{"loc": ("body",), "msg": f"not valid JSON: {error}", "type": "json"}]) from None


def _checked(given: Any) -> DecideBody:
    """Validates a body. Raises RequestValidationError."""
    try:
        return DecideBody.model_validate(given)
    except ValidationError as error:
        problems = [{**one, "loc": ("body", *one["loc"])} for one in error.errors()]
        raise RequestValidationError(problems) from None
