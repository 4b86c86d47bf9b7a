"""What a reader of reports yields: one statement of the tool in words that signs find."""

from __future__ import annotations

from typing import NamedTuple


class ReportLine(NamedTuple):
    """`number` is that of the file's line that says it. `text` names the device or job of which it is said, which often
    stands some lines above. `host` and `time` (ISO 8601) as the report tells them."""

    number: int
    text: str
    host: str | None = None
    time: str | None = None
