"""The line that stands for a file which was left out of an archive: a reason in, one line of JSON out, and back."""

from __future__ import annotations

import json

_BEGIN = b'{"left_out": '
_LONGEST = 500


def line_for(reason: str) -> bytes:
    """-> the whole content of a file that was left out."""
    return json.dumps({"left_out": reason}).encode() + b"\n"


def reason_in(head: bytes) -> str | None:
    """-> why a file was left out that begins with these bytes; None of every other one."""
    if not head.startswith(_BEGIN) or len(head) > _LONGEST:
        return None
    try:
        reason = json.loads(head)["left_out"]
    except (ValueError, LookupError, TypeError):
        return None
    return reason if isinstance(reason, str) else None
