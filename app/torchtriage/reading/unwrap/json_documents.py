"""Records inside of whole documents: JSON that wraps them in lists and objects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import tee
from typing import Any

from torchtriage.reading.unwrap.json_records import WHOLE_LOG, Record, decoded_object, record_in
from torchtriage.reading.unwrap.quoted_strings import in_strings, is_packed

LARGEST = 20 << 20  # bytes of a file that is read whole
_SAMPLE = 64 << 10  # characters
_MOST_MISSED = 1000  # messages that stand there otherwise; looking for each takes long
_DEEPEST = 8  # levels of a document
_FEWEST = 4  # lines of a single record that is a log
_INK = re.compile(r"\S")
_OVER_LINES = re.compile(r"\{\s*\n")
_BATCH = re.compile(r'\{\s?"(?:resourceLogs|streams)":\s?\[')


def in_batch(text: str) -> list[Record]:
    """-> the records of one line that a collector sent as a batch (OpenTelemetry, Loki's push interface), if it is one."""
    data = decoded_object(text) if _BATCH.match(text) else {}
    return [record for _, record in records(data) if record] if data else []


def in_document(text: str) -> tuple[list[tuple[int, dict[str, Any]]], Iterator[tuple[int, str]]]:
    """-> (line number, record) for each record of JSON documents, in their order; and (line number, line) for each line
    of the texts in them where there are no records, one at a time as there can be many. Nothing where they are none."""
    try:
        every = [*documents(text)]
    except (ValueError, RecursionError):
        return [], iter(())
    found, said = list[dict[str, Any]](), list[str]()  # No more of each record, as there can be very many.
    for data in every:
        for one, record in records(data):
            found.append(one)
            said.append(record.said if record else "")
    fewest = WHOLE_LOG if len(found) > 1 else _FEWEST
    if not all(each.count("\n") >= fewest or is_packed(each) for each in said):
        either = ((json.dumps(each, ensure_ascii=False), json.dumps(each)) for each in said)
        return [*zip(_numbers(text, either), found, strict=True)], iter(())
    # What is told of a whole log is none of a line's own.
    of_records = [line for one in found if (record := record_in(one)) for line in record.lines]
    told, again = tee(of_records or (line for data in every for line in in_strings(data)))
    # A part of a longer text has no quotes around it, and its line end may be the text's.
    spelled = ((json.dumps(line)[1:-1], json.dumps(line, ensure_ascii=False)[1:-1]) for line in again)
    return [], zip(_numbers(text, spelled), told, strict=True)


def _numbers(text: str, every: Iterable[tuple[str, str]]) -> Iterator[int]:
    """Yields for each message, which can be spelled in two ways, the number of the line in which it stands, or of the
    one before it."""
    place, number, missed = 0, 1, 0
    for either in every:
        ends = ((spelled, place + len(spelled) + _SAMPLE) for spelled in (either if missed < _MOST_MISSED else ()))
        at = next((at for spelled, end in ends if (at := text.find(spelled, place, end)) >= 0), -1)
        missed += at < 0
        if at >= 0:
            number += text.count("\n", place, at)
            place = at
        yield number


def documents(text: str) -> Iterator[Any]:
    """Yields the values of JSON documents that stand one after another: one, or objects over several lines each. Raises
    ValueError where something else stands, RecursionError."""
    # A line end can stand in a string: where a line was cut that is too long.
    decoder, begins = json.JSONDecoder(strict=False), _INK.search(text)
    several = begins is not None and _OVER_LINES.match(text, begins.start()) is not None
    while begins is not None:
        data, end = decoder.raw_decode(text, begins.start())
        yield data
        begins = _INK.search(text, end)
        if begins is not None and not (several and _OVER_LINES.match(text, begins.start())):
            raise json.JSONDecodeError("Extra data", text, end)


def records(data: Any, depth: int = 0) -> Iterator[tuple[dict[str, Any], Record | None]]:
    """Yields the records in a decoded document, whatever it wraps them in, as they stand and as they are read."""
    if isinstance(data, dict):
        if isinstance(data.get("stream"), dict) and isinstance(data.get("values"), list):  # Loki's own interface
            pairs = (value for value in data["values"] if isinstance(value, list) and len(value) > 1)
            told = ({"timestamp": when, "line": said, "labels": data["stream"]} for when, said, *_ in pairs)
            yield from ((each, record_in(each)) for each in told)
            return
        inside = [value for value in data.values() if isinstance(value, list | dict) and value]
        if (record := record_in(data)) and not any(_holds_records(value) for value in inside):
            yield data, record
            return
    elif not isinstance(data, list):
        return
    elif data and all(isinstance(each, dict) and {"field", "value"} <= each.keys() for each in data):
        fields = {str(each["field"]).lstrip("@"): each["value"] for each in data}  # CloudWatch Logs Insights
        yield fields, record_in(fields)
        return
    else:
        inside = [value for value in data if isinstance(value, list | dict)]
    if depth < _DEEPEST:
        for value in inside:
            yield from records(value, depth + 1)


def _holds_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and record_in(value[0]) is not None
