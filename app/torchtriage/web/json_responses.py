"""JSON answers."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response


class Answer(Response):
    """JSON that can be made of any text: a lone half of a character pair becomes a question mark."""

    media_type = "application/json"

    def __init__(self, content: Any, status_code: int = 200, headers: dict[str, str] | None = None) -> None:
        super().__init__(content, status_code, headers)

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
