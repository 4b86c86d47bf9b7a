"""The JSON line that replaces a file which was left out of an archive. Writes and reads it."""

from __future__ import annotations

import json

_BEGIN = b'{"left_out": '
_MAX_LENGTH = 500


def omission_line(reason: str) -> bytes:
    """Returns the content that replaces a file which was left out."""
    return json.dumps({"left_out": reason}).encode() + b"\n"


def omission_reason(head: bytes) -> str | None:
    """Returns why a file that begins with these bytes was left out. None for any other file."""
    if not head.startswith(_BEGIN) or len(head) > _MAX_LENGTH:
        return None
    try:
        reason = json.loads(head)["left_out"]
    except (ValueError, LookupError, TypeError):
        return None
    return reason if isinstance(reason, str) else None
