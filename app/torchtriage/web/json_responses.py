"""JSON answers that any text can be part of."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response


class Answer(Response):
    """A JSON answer. Characters that UTF-8 cannot encode (unpaired surrogates) become question marks."""

    media_type = "application/json"

    def __init__(self, content: Any, status_code: int = 200, headers: dict[str, str] | None = None) -> None:
        super().__init__(content, status_code, headers)

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
