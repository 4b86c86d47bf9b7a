"""Puts a file's lines in the order in which they were written: whole JSON documents, tables, exports newest first.

Blocks in, blocks out. Only these few forms are read whole, and only up to a size; everything else goes by untouched.
"""

from __future__ import annotations

import io
import json
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

from app.reading.records import record_in

LARGEST = 32 << 20  # bytes of a file that is read whole
_SAMPLE = 64 << 10  # bytes
_JSON, _TABLE, _NEWEST_FIRST = "a JSON document", "a table", "newest lines first"
_FROM_THE_END = "the newest lines stand first: read from the end"
_DEEPEST = 6  # levels of a document
_FEWEST_TIMES = 4  # different times that show an order
_TIME = re.compile(
    rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?"
    rb"|(?<=time\":)\s?\"?\d{10,19}|(?<=timestamp\":)\s?\"?\d{10,19}|(?<=ts\":)\s?\"?\d{10,19}|^\d{13,19}(?=[\t ,])"
)
_DOCUMENT = re.compile(
    rb"\s*(?:\[\s*[\[{]|\{\s*\r?\n|\{\s*\"(?:events|hits|status|data|results|entries|items)\":\s*[\[{\"])"
)
_HEADER = re.compile(
    r"(?:^|,)\"?(?:@?message|line|content|log|body|textpayload|_raw|jsonpayload\.\w+|logmessage)\"?(?:,|$)", re.I
)
_TABLE_NAMES = {"content": "message", "log": "message", "body": "message", "textpayload": "message", "line": "message",
                "_raw": "message",
    "message": "message", "@message": "message", "logmessage": "message", "date": "time", "@timestamp": "time",
                "timestamp": "time", "tsns": "ts"}  # fmt: skip


class Arranged(NamedTuple):
    """Blocks in the order of writing. `numbers`: for each of their lines the number that it has in the file, None where
    nothing was moved. `rewritten`: they are no lines of the file, but records taken out of a document or a table.
    `warning` says what could not be done, or what was done, None most often."""

    blocks: Iterator[bytes]
    numbers: Sequence[int] | None = None
    rewritten: bool = False
    warning: str | None = None


def arranged(blocks: Iterable[bytes]) -> Arranged:
    """-> the blocks of one file, arranged. Raises what reading `blocks` raises."""
    rest = iter(blocks)
    read: list[bytes] = []
    size = 0
    while size < _SAMPLE and (block := next(rest, b"")):
        read.append(block)
        size += len(block)
    form = _form((read[0] if len(read) == 1 else b"".join(read))[:_SAMPLE], whole=size < _SAMPLE)
    if form is None:
        return Arranged(chain(read, rest))
    for block in rest:
        read.append(block)
        size += len(block)
        if size > LARGEST:
            return Arranged(chain(read, rest), warning=f"{form}: more than {LARGEST >> 20} MB, so read as it stands")
    content = b"".join(read)
    del read
    if form == _NEWEST_FIRST:
        return _turned(content)
    records = list(_documents(content.decode("utf-8", "replace")) if form == _JSON else _rows(content))
    if not records:
        return Arranged(_cut(content))
    return _in_order(records)


def _form(sample: bytes, whole: bool) -> str | None:
    head = sample[: sample.find(b"\n")] if b"\n" in sample else sample
    single = sample[:1] == b"{" and b"\n" not in sample.rstrip()
    if (single or _DOCUMENT.match(sample)) and _goes_on(sample.decode("utf-8", "replace"), whole):
        return _JSON
    if b"," in head[:2000] and _HEADER.search(head[:2000].decode("utf-8", "replace").strip()):
        return _TABLE
    lines = sample.split(b"\n")[: None if whole else -1]
    # Most logs are told by a few lines.
    newest = all(_falls([time for line in part if (time := _time_in(line))], len(part)) for part in (lines[:40], lines))
    return _NEWEST_FIRST if newest else None


def _time_in(line: bytes) -> bytes:
    """-> the time that stands near either end of a line, or nothing."""
    found = _TIME.search(line[:300]) or (_TIME.search(line[-200:]) if len(line) > 300 else None)
    return found[0] if found else b""


def _goes_on(text: str, whole: bool) -> bool:
    """-> whether a text that begins like a JSON document is one as far as it goes; a log can begin with its settings."""
    try:
        _, end = json.JSONDecoder().raw_decode(text.lstrip())
    except json.JSONDecodeError as error:
        return not whole and (error.msg.startswith("Unterminated string") or error.pos >= len(error.doc) - 16)
    except RecursionError:
        return False
    return not text.lstrip()[end:].strip()


def _falls(times: list[bytes], lines: int) -> bool:
    """-> whether nearly all times are earlier than the one above."""
    falls = sum(above > below for above, below in pairwise(times))
    rises = sum(above < below for above, below in pairwise(times))
    return falls >= _FEWEST_TIMES - 1 and rises * 20 <= falls and len(times) * 2 >= lines


def _turned(content: bytes) -> Arranged:
    """-> the lines of an export that begins with the newest, from the oldest on; lines without a time stay together."""
    lines = content.removesuffix(b"\n").split(b"\n")
    times = [_time_in(line) for line in lines]
    starts = [at for at, time in enumerate(times) if at == 0 or time]
    groups = [range(start, end) for start, end in pairwise([*starts, len(lines)])]
    if _reads_down(lines):
        groups.sort(key=lambda group: times[group.start])
    else:
        groups.reverse()
    places = array("q", (at for group in groups for at in group))
    turned = b"\n".join([lines[at] for at in places]) + b"\n"
    return Arranged(_cut(turned), array("q", (at + 1 for at in places)), warning=_FROM_THE_END)


def _reads_down(lines: Sequence[bytes]) -> bool:
    """-> whether lines of one instant stand in the order of writing: a traceback's head above its first frame."""
    heads = [at for at, line in enumerate(lines) if b"Traceback (most recent call last)" in line]
    return any(at + 1 < len(lines) and b'File "' in lines[at + 1].replace(b"\\", b"") for at in heads)


def _in_order(records: list[tuple[int, dict[str, Any]]]) -> Arranged:
    """-> records as lines of JSON, the oldest first. Each comes with its line in the file."""
    lines = [json.dumps(record).encode() for _, record in records]
    numbers = [number for number, _ in records]
    turned = None
    times = [_time_in(line) for line in lines]
    if _falls([time for time in times if time], len(lines)):
        down = _reads_down(lines)
        order = sorted(range(len(lines)), key=lambda at: (times[at], at if down else -at))
        lines, numbers = [lines[at] for at in order], [numbers[at] for at in order]
        turned = _FROM_THE_END
    return Arranged(_cut(b"\n".join(lines) + b"\n"), array("q", numbers), rewritten=True, warning=turned)


def _cut(content: bytes) -> Iterator[bytes]:
    """Yields the content in blocks that end at line ends."""
    start = 0
    while start < len(content):
        end = content.find(b"\n", start + (1 << 20)) + 1 or len(content)
        yield content[start:end]
        start = end


def _documents(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields (line number, record) for each record of a JSON document, in its order; nothing where it is none."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return
    place, number = 0, 1
    for record in _records(data, 0) if isinstance(data, list | dict) else ():
        known = record_in(record)
        said = known.said if known else ""
        for spelled in (json.dumps(said, ensure_ascii=False), json.dumps(said)):
            found = text.find(spelled, place, place + len(spelled) + _SAMPLE)
            if found >= 0:
                number += text.count("\n", place, found)
                place = found
                break
        yield number, record


def _records(data: Any, depth: int) -> Iterator[dict[str, Any]]:
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
            yield from _records(value, depth + 1)


def _holds_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and record_in(value[0]) is not None


def _rows(content: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields (line number, record) for each row of a table, in its order."""
    import csv  # here, as few files are tables

    csv.field_size_limit(LARGEST)
    reader = csv.reader(io.StringIO(content.decode("utf-8", "replace"), newline=""))
    names = [_TABLE_NAMES.get(name.strip().lower(), name.strip()) for name in next(reader, [])]
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
