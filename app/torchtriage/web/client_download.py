"""/client.py: serves the client as one file, without authentication."""

from __future__ import annotations

import hashlib
from pathlib import Path

from fastapi import APIRouter, Request, Response

import torchtriage.client
from torchtriage.web.errors import error_responses

router = APIRouter(tags=["client"])

_SOURCE = (Path(torchtriage.client.__path__[0]) / "torchtriage_client.py").read_bytes()
_TAG = f'"{hashlib.sha256(_SOURCE).hexdigest()[:32]}"'


@router.get(
    "/client.py",
    response_class=Response,
    responses={
        200: {"content": {"text/x-python": {"schema": {"type": "string"}}}},
        304: {"description": "The client did not change since the ETag in If-None-Match"},
        **error_responses(guarded=False),
    },
)
async def client(request: Request) -> Response:
    """Download the client: one file for Python 3.8 or newer, without dependencies."""
    headers = {"ETag": _TAG, "Cache-Control": "no-cache"}
    if _TAG in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(_SOURCE, media_type="text/x-python", headers=headers)
