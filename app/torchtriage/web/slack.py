"""/slack/commands, /slack/interactions and /slack/events: verifies Slack's signed requests and returns the immediate
answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from anyio import to_thread
from fastapi import APIRouter, Request, Response

from torchtriage.domain.byte_sizes import limit_text
from torchtriage.errors import BadInput, LogTooLarge, NotFound
from torchtriage.services import slack_requests
from torchtriage.services.service import Service
from torchtriage.services.slack_requests import Answer as Said
from torchtriage.web.dependencies import ServiceDep
from torchtriage.web.errors import error_responses
from torchtriage.web.json_responses import Answer

router = APIRouter(prefix="/slack", tags=["slack"])
_MAX_BYTES = 1 << 20  # bytes; requests of Slack are far smaller
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"description": "What Slack shows immediately, or nothing", "content": {"application/json": {}}},
    **error_responses(400, 401, 404, 413, guarded=False),
}
Handle = Callable[[Service, str, Any], Said]


class BadSignature(BadInput):
    """The request was not signed by Slack, or is too old."""

    status = 401
    code = "bad_signature"


@router.post("/commands", responses=_ANSWERS)
async def command(request: Request, service: ServiceDep) -> Response:
    """Slack slash command: `/triage` with a pasted log, or alone to open a form."""
    return await _handled(request, service, slack_requests.command, _form)


@router.post("/interactions", responses=_ANSWERS)
async def interaction(request: Request, service: ServiceDep) -> Response:
    """Slack interaction: a button of an alert, the shortcut on a message, or a form."""
    return await _handled(
        request, service, slack_requests.interaction, lambda body: _json(_form(body).get("payload", ""))
    )


@router.post("/events", responses=_ANSWERS)
async def event(request: Request, service: ServiceDep) -> Response:
    """Slack event: a shared file, or a mention of the bot."""
    return await _handled(request, service, slack_requests.event, _json)


async def _handled(request: Request, service: Service, handle: Handle, read: Callable[[bytes], Any]) -> Response:
    body = await _body(request)
    signature = _checked(request, service.settings.slack_signing_secret, body)
    key = f"slack request {hashlib.sha256(signature.encode()).hexdigest()}"
    said = await to_thread.run_sync(handle, service, key, read(body))
    return Response(status_code=200) if said is None else Answer(said)


async def _body(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BYTES:
            raise LogTooLarge(f"the request is larger than Slack's limit of {limit_text(_MAX_BYTES)}", limit=_MAX_BYTES)
    return body


def _checked(request: Request, secret: str, body: bytes) -> str:
    """Returns the signature after verifying it over the raw body. Raises NotFound if no secret is set, or
    BadSignature."""
    if not secret:
        raise NotFound("Slack is not configured: TRIAGE_SLACK_SIGNING_SECRET is not set")
    # Imported here, because the routes also exist without the extra `slack`.
    from slack_sdk.signature import SignatureVerifier

    time = request.headers.get("x-slack-request-timestamp", "")
    signature = request.headers.get("x-slack-signature", "")
    try:
        valid = time.isascii() and time.isdecimal() and SignatureVerifier(secret).is_valid(body, time, signature)
    except (ValueError, TypeError, OverflowError):  # body not UTF-8, or invalid signature or time
        valid = False
    if not valid:
        raise BadSignature("the Slack signature is invalid, or older than five minutes")
    return signature


def _form(body: bytes) -> dict[str, str]:
    return dict(parse_qsl(body.decode(), keep_blank_values=True))


def _json(text: bytes | str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise BadInput("the body is not a JSON object")
    return found
