"""Whether a retry helps, as each page, chat and report says it."""

from __future__ import annotations


def retry_word(retry: str, advice: str) -> str:
    """-> yes, no, once, or elsewhere where a retry is for other hosts."""
    return "elsewhere" if advice == "retry-elsewhere" else retry
