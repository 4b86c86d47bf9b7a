"""The word for a retry that each page, chat and report uses."""

from __future__ import annotations


def retry_word(retry: str, advice: str) -> str:
    """Returns yes, no or once, or elsewhere if the retry must use other hosts."""
    return "elsewhere" if advice == "retry-elsewhere" else retry
