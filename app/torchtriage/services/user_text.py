"""Text that people write, cleaned for storing: without secrets, and without what Postgres cannot store."""

from __future__ import annotations

from typing import overload

from torchtriage.reading.redaction.redact import redact

NUL = "\0"  # Postgres refuses it in any text


@overload
def cleaned(text: str) -> str: ...
@overload
def cleaned(text: None) -> None: ...
def cleaned(text: str | None) -> str | None:
    """-> the text that is kept for what somebody wrote; None stays None."""
    return None if text is None else redact(text.replace(NUL, ""))
