"""Pods and events as `kubectl get` prints them: a table, JSON or YAML; their lines, with node and time."""

from __future__ import annotations

import json
from collections.abc import Iterator

from torchtriage.evidence.reports.report_line import ReportLine
from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.whole_files import NotRead

_MOST_OPENED = 500_000  # lists and objects in JSON
_FEW = 3  # line ends of a document that was printed without any
#     "nodeName": "gpu-021" ·   nodeName: gpu-021
_NODE = lazy_regex(r'"?nodeName"?: "?([\w.-]{1,253})')
#     "finishedAt": "2026-05-01T09:05:11Z" ·   lastTimestamp: "2026-05-01T09:05:11Z"
_TIME = lazy_regex(r'^[\s-]*"?(?:finishedAt|lastTimestamp|eventTime)"?: "?(\d{4}-\d\d-\d\dT[\d:]{8}(?:\.\d+)?Z)')
_ANOTHER = lazy_regex(r'^[\s-]*"?(?:apiVersion|state|lastState)"?:')  # what follows has a time of its own, or none


def lines(text: str) -> Iterator[ReportLine]:
    """-> the lines. Raises NotRead where JSON has too many lists to be read."""
    nodes = {found[1] for found in _NODE.finditer(text)}
    host = nodes.pop() if len(nodes) == 1 else None
    if text.lstrip()[:1] in "{[" and text.strip().count("\n") < _FEW:
        yield from (ReportLine(1, line, host, time) for line, time in _dated(_printed(text)))
        return
    dated = _dated(text.split("\n"))
    yield from (ReportLine(number, line, host, time) for number, (line, time) in enumerate(dated, 1))


def _printed(text: str) -> list[str]:
    if text.count("[") + text.count("{") > _MOST_OPENED:
        raise NotRead(f"more than {_MOST_OPENED:,} lists")
    try:
        return json.dumps(json.loads(text), indent=1, ensure_ascii=False).split("\n")
    except (ValueError, RecursionError) as error:
        raise NotRead("incomplete JSON") from error


def _dated(lines: list[str]) -> Iterator[tuple[str, str | None]]:
    time = None
    for line in lines:
        if _ANOTHER.match(line):
            time = None
        elif found := _TIME.match(line):
            time = found[1]
        yield line.strip(), time
