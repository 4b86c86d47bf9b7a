"""Starts the service's own messages for a command: settings in, lines without secrets on standard error out."""

from __future__ import annotations

from torchtriage.logging_config import configure
from torchtriage.reading.redaction.redact import redacted
from torchtriage.settings import Settings


def start_logging(settings: Settings) -> None:
    """As the settings say: how much, and in which form."""
    configure(settings.log_level, settings.log_format, _without_secrets)


def _without_secrets(text: str) -> str:
    data = text.encode("utf-8", "surrogateescape")
    return b"".join(redacted([data])).decode("utf-8", "surrogateescape")
