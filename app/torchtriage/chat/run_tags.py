"""Finds the tracked run that a log names, and what failed in it, for MLflow and W&B."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from torchtriage.chat.sanitize import plain
from torchtriage.domain.notice import Notice

PREFIX = "torchtriage"
_UNKNOWN = "unknown"
_VALUE = 400  # maximum characters


def values_of(notice: Notice, fact: str) -> set[str]:
    """Returns the different values that the log shows for a fact."""
    verdict: dict[str, Any] = (notice.document.get("incident") or {}).get("verdict") or {}
    return {str(given["value"]) for given in verdict.get("facts") or () if given["name"] == fact}


def what_failed(notice: Notice) -> dict[str, str]:
    """Returns the tags, by name. Unknown values are included, so that they overwrite values of an earlier incident."""
    root: dict[str, Any] = notice.document["incident"]["verdict"].get("root_cause") or {}
    screen = notice.screen
    found = {
        "outcome": notice.outcome,
        "entry": notice.entry,
        "confidence": root.get("confidence"),
        "retry": screen.retry if screen else None,
        "summary": (screen.what if screen else "") or notice.title,
        "incident": notice.url,
    }
    return {name: plain(value or "", _VALUE) or _UNKNOWN for name, value in found.items()}


def host_of(url: str) -> str | None:
    """Returns the host of a URL in a log, or None if it is not a URL."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
