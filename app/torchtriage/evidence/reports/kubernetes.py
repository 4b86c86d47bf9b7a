"""Reads pods and events as `kubectl get` prints them: a table, JSON or YAML. Yields their lines, with node and time. An
event of JSON or YAML becomes one line, as in the table."""

from __future__ import annotations

import json
from collections.abc import Iterator

from torchtriage.evidence.reports.report_line import ReportLine
from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.whole_files import NotRead

_DatedLine = tuple[int, str, str | None]  # (line number, text, time)
_MAX_OPENED = 500_000  # lists and objects in JSON
_MAX_TEXT = 4000  # characters of a message
_MAX_LINE_ENDS = 3  # a JSON document with at most this many line ends was printed without any
#     "nodeName": "gpu-021" ·   nodeName: gpu-021
_NODE = lazy_regex(r'"?nodeName"?: "?([\w.-]{1,253})')
#     "finishedAt": "2026-05-01T09:05:11Z" ·   lastTimestamp: "2026-05-01T09:05:11Z"
_TIME = lazy_regex(r'^[\s-]*"?(?:finishedAt|lastTimestamp|eventTime)"?: "?(\d{4}-\d\d-\d\dT[\d:]{8}(?:\.\d+)?Z)')
# "kind": "Event", · - kind: Event
_EVENT = lazy_regex(r'^[\s-]*"?kind"?: ?"?Event"?,?\s*$')
_KEY = lazy_regex(r'^(\s*)(- )?"?(\w{1,60})"?:(?:\s+(.*))?$')
# New names, in events.k8s.io/v1, of the fields of v1.
_NEWER = {"note": "message", "regarding": "involvedObject", "deprecatedLastTimestamp": "lastTimestamp"}
_ANOTHER = lazy_regex(r'^[\s-]*"?(?:apiVersion|state|lastState)"?:')  # the part after this has its own time, or none


def lines(text: str) -> Iterator[ReportLine]:
    """Yields the lines of the output. Raises NotRead if JSON has too many lists to read."""
    nodes = {found[1] for found in _NODE.finditer(text)}
    host = nodes.pop() if len(nodes) == 1 else None
    short = text.lstrip()[:1] in "{[" and text.strip().count("\n") < _MAX_LINE_ENDS
    own = _printed(text) if short else text.split("\n")
    depths = [_key_at(line)[0] for line in own if _EVENT.match(line)]
    dated = _events(own, min(depths)) if depths else _dated(own)
    yield from (ReportLine(1 if short else number, line, host, time) for number, line, time in dated)


def _printed(text: str) -> list[str]:
    if text.count("[") + text.count("{") > _MAX_OPENED:
        raise NotRead(f"more than {_MAX_OPENED:,} lists")
    try:
        return json.dumps(json.loads(text), indent=1, ensure_ascii=False).split("\n")
    except (ValueError, RecursionError) as error:
        raise NotRead("incomplete JSON") from error


def _dated(lines: list[str]) -> Iterator[_DatedLine]:
    time = None
    for number, line in enumerate(lines, 1):
        if _ANOTHER.match(line):
            time = None
        elif found := _TIME.match(line):
            time = found[1]
        yield number, line.strip(), time


def _events(lines: list[str], depth: int) -> Iterator[_DatedLine]:
    """Yields `Warning Evicted pod/train-worker-0 The node was low on …` for each event, at the line of its message.
    `depth` is the indent of the keys of events."""
    fields: dict[str, str] = {}
    at, open_ = 0, ""
    for number, line in enumerate(lines, 1):
        deep, key, value = _key_at(line)
        if deep > depth and open_ == "message":  # the message continues over several lines
            if len(fields["message"]) < _MAX_TEXT:
                fields["message"] += f" {line.strip()}"
        elif deep == depth and key:
            key = _NEWER.get(key, key)
            if key == "apiVersion" and fields:
                yield at, _table_form(fields), _unquoted(fields.get("lastTimestamp", "")) or None
                fields = {}
            open_, fields[key] = key, value
            at = number if key == "message" or not at else at
        elif deep > depth and open_ == "involvedObject" and key in ("kind", "name"):
            fields[f"of {key}"] = _unquoted(value)
    if fields:
        yield at, _table_form(fields), _unquoted(fields.get("lastTimestamp", "")) or None


def _table_form(fields: dict[str, str]) -> str:
    subject = f"{fields.get('of kind', '').lower()}/{fields.get('of name', '')}"
    words = (fields.get(key, "") for key in ("type", "reason"))
    return "   ".join([*map(_unquoted, words), subject, _unquoted(fields.get("message", ""))])


def _key_at(line: str) -> tuple[int, str, str]:
    """Returns the indent of a line's key, the key, and the part of its value in this line. The key is empty if the line
    has none."""
    found = _KEY.match(line)
    if found is None:
        return len(line) - len(line.lstrip()), "", ""
    return len(found[1]) + len(found[2] or ""), found[3], (found[4] or "").strip().removesuffix(",")


def _unquoted(value: str) -> str:
    """Returns a value without quotes and JSON escapes."""
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return " ".join(value.replace('\\"', '"').replace("\\n", " ").split())
