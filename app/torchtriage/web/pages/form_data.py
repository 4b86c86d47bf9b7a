"""Reads the fields of a form in a request."""

from __future__ import annotations

from urllib.parse import parse_qsl

from fastapi import Request

from torchtriage.errors import BadInput


async def read_form(request: Request, longest: int = 20_000) -> dict[str, str]:
    """Returns the fields of a URL-encoded body of at most `longest` bytes, without characters that Postgres rejects.

    Raises BadInput if it is longer.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > longest:
            raise BadInput("the form is too long")
    fields = parse_qsl(body.decode("utf-8", "replace"), encoding="utf-8", errors="replace", max_num_fields=100)
    return {name: value.replace("\0", "").strip() for name, value in fields}
