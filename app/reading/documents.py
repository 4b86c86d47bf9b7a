"""Records inside of whole documents: JSON that wraps them in lists and objects, tables with a column of messages."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import Any

from app.reading.records import Record, decoded_object, is_beside, is_said, record_in

LARGEST = 32 << 20  # bytes of a file that is read whole
_SAMPLE = 64 << 10  # characters
_DEEPEST = 8  # levels of a document
_INK = re.compile(r"\S")
_OVER_LINES = re.compile(r"\{\s*\n")
_BATCH = re.compile(r'\{\s?"(?:resourceLogs|streams)":\s?\[')
_CELL = re.compile(r"[@\w][\w @.:/\[\]()-]{0,60}")
# Names of columns that need no other's to be told by.
_OF_TABLES = {"log", "textpayload", "body", "_raw", "text", "message", "@message", "msg", "content", "line", "日志", "日志内容",
              "内容", "消息"}  # fmt: skip
_TABLE_NAMES = {"date": "time", "@timestamp": "time", "timestamp": "time", "tsns": "ts"}


def in_batch(text: str) -> list[Record]:
    """-> the records of one line that a collector sent as a batch (OpenTelemetry, Loki's push interface), if it is one."""
    data = decoded_object(text) if _BATCH.match(text) else {}
    return [record for each in records(data) if (record := record_in(each))] if data else []


def is_table(header: str) -> bool:
    """-> whether a file's first line names columns, one of which holds messages."""
    return _columns(header) is not None


def _columns(header: str) -> tuple[str, list[str]] | None:
    """-> what parts the columns, and their names; None where the line is no header of a log."""
    mark = max(",;\t", key=header.count)
    names = [name.strip().strip('"').strip() for name in header.strip().split(mark)]
    if len(names) < 2 or not all(name and _CELL.fullmatch(name) for name in names) or _message(names) is None:
        return None
    return mark, names


def _message(names: list[str]) -> int | None:
    """-> the place of the column that holds messages."""
    known = (at for at, name in enumerate(names) if name.lower() in _OF_TABLES)
    named = (at for at, name in enumerate(names) if is_said(name.rpartition(".")[2]) and not is_beside(name))
    return next(known, next(named, None))


def in_document(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields (line number, record) for each record of JSON documents, in their order; nothing where they are none."""
    try:
        every = [*documents(text)]
    except (ValueError, RecursionError):
        return
    place, number = 0, 1
    for record in (record for data in every if isinstance(data, list | dict) for record in records(data)):
        known = record_in(record)
        said = known.said if known else ""
        for spelled in (json.dumps(said, ensure_ascii=False), json.dumps(said)):
            found = text.find(spelled, place, place + len(spelled) + _SAMPLE)
            if found >= 0:
                number += text.count("\n", place, found)
                place = found
                break
        yield number, record


def documents(text: str) -> Iterator[Any]:
    """Yields the values of JSON documents that stand one after another: one, or objects over several lines each. Raises
    ValueError where something else stands, RecursionError."""
    decoder, begins = json.JSONDecoder(), _INK.search(text)
    several = begins is not None and _OVER_LINES.match(text, begins.start()) is not None
    while begins is not None:
        data, end = decoder.raw_decode(text, begins.start())
        yield data
        begins = _INK.search(text, end)
        if begins is not None and not (several and _OVER_LINES.match(text, begins.start())):
            raise json.JSONDecodeError("Extra data", text, end)


def records(data: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yields the records in a decoded document, whatever it wraps them in."""
    if isinstance(data, dict):
        if isinstance(data.get("stream"), dict) and isinstance(data.get("values"), list):  # Loki's own interface
            pairs = (value for value in data["values"] if isinstance(value, list) and len(value) > 1)
            yield from ({"timestamp": when, "line": said, "labels": data["stream"]} for when, said, *_ in pairs)
            return
        inside = [value for value in data.values() if isinstance(value, list | dict) and value]
        if record_in(data) and not any(_holds_records(value) for value in inside):
            yield data
            return
    elif data and all(isinstance(each, dict) and {"field", "value"} <= each.keys() for each in data):
        yield {str(each["field"]).lstrip("@"): each["value"] for each in data}  # CloudWatch Logs Insights
        return
    else:
        inside = [value for value in data if isinstance(value, list | dict)]
    if depth < _DEEPEST:
        for value in inside:
            yield from records(value, depth + 1)


def _holds_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and record_in(value[0]) is not None


def in_table(content: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields (line number, record) for each row of a table, in its order."""
    import csv  # here, as few files are tables

    csv.field_size_limit(LARGEST)
    text = content.decode("utf-8", "replace")
    mark, names = _columns(text.partition("\n")[0]) or (",", [])
    said = _message(names)
    names = ["message" if at == said else _TABLE_NAMES.get(name.lower(), name) for at, name in enumerate(names)]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
    next(reader, None)
    at = reader.line_num + 1
    while True:
        try:
            row = next(reader)
        except (StopIteration, csv.Error):
            return
        record = dict(zip(names, row, strict=False))
        if record.get("message"):
            yield at, {"time": "", **record}
        at = reader.line_num + 1
