"""Reads the problems that NCCL's diagnostics found. One process prints the lines for all hosts and ranks, so its own
host does not matter."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.evidence.reports.report_line import ReportLine
from torchtriage.lazy_regex import lazy_regex

# gpu-021:3487 NCCL DIAG [INFO] Xid 79 detected 1 time on host gpu-033. For the recommended response, see …
_LINE = lazy_regex(r"(?:\S{1,80}:\d{1,9} )?(NCCL DIAG \[INFO\] \S.*)")
_HOST = lazy_regex(r" on host ([\w.-]{1,64}?)\.? ?(?:[A-Z]|$)")


def lines(text: str) -> Iterator[ReportLine]:
    """Yields `NCCL DIAG [INFO] Xid 79 detected 1 time on host gpu-033. …` for each check that failed."""
    for number, line in enumerate(text.split("\n"), 1):
        if found := _LINE.match(line.rstrip()):
            host = _HOST.search(found[1])
            yield ReportLine(number, found[1], host[1] if host else None)
