"""Records inside of whole documents: JSON that wraps them in lists and objects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from app.reading.arrangement.quoted import in_strings
from app.reading.records import Record, decoded_object, record_in

LARGEST = 32 << 20  # bytes of a file that is read whole
_SAMPLE = 64 << 10  # characters
_MOST_MISSED = 1000  # messages that stand there otherwise; looking for each takes long
_DEEPEST = 8  # levels of a document
_INK = re.compile(r"\S")
_OVER_LINES = re.compile(r"\{\s*\n")
_BATCH = re.compile(r'\{\s?"(?:resourceLogs|streams)":\s?\[')


def in_batch(text: str) -> list[Record]:
    """-> the records of one line that a collector sent as a batch (OpenTelemetry, Loki's push interface), if it is one."""
    data = decoded_object(text) if _BATCH.match(text) else {}
    return [record for each in records(data) if (record := record_in(each))] if data else []


def in_document(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields (line number, record) for each record of JSON documents, in their order, or for each line of the texts in
    them where there are no records; nothing where they are none."""
    try:
        every = [*documents(text)]
    except (ValueError, RecursionError):
        return
    found = [record for data in every if isinstance(data, list | dict) for record in records(data)]
    told = [] if found else [f"{line}\n" for data in every for line in in_strings(data)]
    if told:  # A part of a longer text has no quotes around it, and its line end may be the text's.
        spelled = ((json.dumps(said)[1:-3], json.dumps(said, ensure_ascii=False)[1:-3]) for said in told)
        yield from zip(_numbers(text, spelled), ({"log": said} for said in told), strict=True)
        return
    saids = (known.said if (known := record_in(record)) else "" for record in found)
    yield from zip(
        _numbers(text, ((json.dumps(said, ensure_ascii=False), json.dumps(said)) for said in saids)), found, strict=True
    )


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
