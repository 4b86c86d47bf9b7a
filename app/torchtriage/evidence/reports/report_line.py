"""The result of a reader of reports: one statement of the tool, in words that signs match."""

from __future__ import annotations

from typing import NamedTuple


class ReportLine(NamedTuple):
    """`number` is the number of the file's line with the statement. `text` includes the device or job that the
    statement is about, which is often named some lines above. `host` and `time` (ISO 8601) are from the report."""

    number: int
    text: str
    host: str | None = None
    time: str | None = None
