"""Lines of keys and values, `time="…" level=info msg="…"`, as Go's loggers write them around what they pass on."""

from __future__ import annotations

import json
import re

SAYS = 'msg="'  # what every such line holds
_PAIR = re.compile(r'([A-Za-z_@][\w.@/-]*)=("(?:[^"\\]|\\.)*"|[^\s"]*)(?:\s+|$)')
_MOST = 64  # pairs; a line with more is something else


def fields_of(text: str) -> dict[str, str]:
    """-> the fields of a line that holds keys and values and nothing else, in their order; of any other line none."""
    fields: dict[str, str] = {}
    at = 0
    while at < len(text) and len(fields) < _MOST:
        pair = _PAIR.match(text, at)
        if pair is None:
            return {}
        fields[pair[1]] = _unquoted(pair[2])
        at = pair.end()
    return fields if at >= len(text) else {}


def _unquoted(value: str) -> str:
    """-> a value without its quotes; Go escapes as JSON does, but for control characters."""
    if value[:1] != '"':
        return value
    try:
        return str(json.loads(value, strict=False))
    except ValueError:
        return value[1:-1]
