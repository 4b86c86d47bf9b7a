"""Cleans text that people write: removes secrets, and characters that Postgres cannot store."""

from __future__ import annotations

from typing import overload

from torchtriage.reading.redaction.redact import redact

NUL = "\0"  # Postgres rejects it in any text


@overload
def cleaned(text: str) -> str: ...
@overload
def cleaned(text: None) -> None: ...
def cleaned(text: str | None) -> str | None:
    """Returns the text to store. None stays None."""
    return None if text is None else redact(text.replace(NUL, ""))
