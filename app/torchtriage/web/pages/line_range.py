"""Reads from the URL which lines of a log are requested: `line=10` or `line=10-20`."""

from __future__ import annotations

from fastapi import Request

from torchtriage.lazy_regex import lazy_regex

_LINES = lazy_regex(r"([0-9]{1,15})(?:-([0-9]{1,15}))?")


def lines_asked(request: Request) -> tuple[int | None, int | None]:
    """Returns the first and the last line, in ascending order. The last is None for a single line; both are None if
    there is no such parameter."""
    found = _LINES.fullmatch(request.query_params.get("line", "").strip())
    if found is None:
        return None, None
    first, last = int(found[1]), int(found[2]) if found[2] else None
    return (first, last) if last is None or last >= first else (last, first)
