"""Reads CSV and TSV tables with a column of messages, as consoles export them, with or without column names.

Turns the bytes of a file into its rows as records, each with its line number.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.log_records import is_context_field, is_message_field
from torchtriage.reading.prefixes.times import iso
from torchtriage.reading.unwrap.decoder_interface import MAX_BYTES, Decode, Decoded, Decoder, Head, untouched
from torchtriage.reading.unwrap.newest_first import from_records

_SEPARATORS = ",;\t"
_SOME = 8  # rows that are checked to recognize a table without names
_MIN_COUNT = 4
_SAMPLE = 16 << 10  # characters
_CELL = lazy_regex(r"[@\w][\w @.:/\[\]()-]{0,60}")
# Column names that alone show that the column has messages.
_OF_TABLES = {"log", "textpayload", "body", "_raw", "text", "message", "@message", "msg", "content", "line", "日志", "日志内容",
              "内容", "消息"}  # fmt: skip
_TABLE_NAMES = {"date": "time", "@timestamp": "time", "timestamp": "time", "tsns": "ts"}
_TIME = lazy_regex(
    r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d)?[.\d]*(?:Z| UTC|[+-]\d\d:?\d\d)?|1\d{9}(?:\d{3}){0,3}(?:\.\d+)?"
)
# of Kibana and Azure
_TIME_IN_WORDS = lazy_regex(
    r"(?P<month>[A-Z][a-z]{2}) (?P<day>\d{1,2}), (?P<year>\d{4}) @ (?P<clock>\d\d:\d\d:\d\d(?:\.\d+)?)"
    r"|(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<y>\d{4}), (?P<hour>\d{1,2})(?P<rest>:\d\d:\d\d(?:\.\d+)?) (?P<half>[AP])M"
)
_FIRST_CELL = lazy_regex(rf"\"?(?:{_TIME.pattern}|{_TIME_IN_WORDS.pattern})\"?[{_SEPARATORS}]")
_MILLISECONDS = lazy_regex(r"\d{3}\b")  # of a logger's time, after a comma


def _recognise(head: Head) -> Decode | None:
    return _decode if is_table(head.sample) else None


def _decode(content: bytes) -> Decoded:
    return from_records(rows(content)) or untouched(content)


def is_table(sample: bytes) -> bool:
    """Returns whether a file that begins with `sample` is a table: its first line names columns, one of them for
    messages; or its rows begin with a time and have the same number of cells."""
    head = sample[:2000].partition(b"\n")[0].decode("utf-8", "replace")
    return _named_columns(head) is not None or (bool(_FIRST_CELL.match(head)) and _unnamed_columns(sample) is not None)


def _unnamed_columns(sample: bytes) -> tuple[str, list[str]] | None:
    """Returns the separator of a table without names, and names for its columns, or None."""
    text = sample[:_SAMPLE].decode("utf-8", "replace")
    begins = _FIRST_CELL.match(text)
    if begins is None:
        return None
    separator = begins[0][-1]
    first = [row for _, row in zip(range(_SOME), _rows(text, separator), strict=False)]
    if len(first) < _MIN_COUNT or len({len(row) for row in first}) > 1 or len(first[0]) < 2:
        return None
    if not all(_TIME.fullmatch(row[0]) or _TIME_IN_WORDS.fullmatch(row[0]) for row in first) or _MILLISECONDS.match(
        first[0][1]
    ):
        return None
    message = max(
        range(1, len(first[0])), key=lambda at: (len({row[at] for row in first}), sum(len(row[at]) for row in first))
    )
    if not any(map(str.isalpha, "".join(row[message] for row in first))):
        return None
    return separator, ["time", *("message" if at == message else f"cell {at}" for at in range(1, len(first[0])))]


def _rows(text: str, separator: str) -> Iterator[list[str]]:
    import csv  # imported here because few files are tables

    csv.field_size_limit(MAX_BYTES)
    # Fields that a logger separates by tabs are not quoted.
    bare = separator == "\t" and '""' not in text
    lines = io.StringIO(text, newline="")
    try:
        yield from csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_NONE if bare else csv.QUOTE_MINIMAL)
    except csv.Error:
        return


def _named_columns(header: str) -> tuple[str, list[str]] | None:
    """Returns the separator of the columns and their names, or None if the line is not the header of a log."""
    separator = max(",;\t", key=header.count)
    names = [name.strip().strip('"').strip() for name in header.strip().split(separator)]
    if len(names) < 2 or not all(name and _CELL.fullmatch(name) for name in names) or _message_column(names) is None:
        return None
    return separator, names


def _message_column(names: list[str]) -> int | None:
    """Returns the index of the column with messages, or None."""
    known = (at for at, name in enumerate(names) if name.lower() in _OF_TABLES)
    named = (
        at for at, name in enumerate(names) if is_message_field(name.rpartition(".")[2]) and not is_context_field(name)
    )
    return next(known, next(named, None))


def rows(content: bytes) -> Iterator[tuple[int, dict[str, str]]]:
    """Yields (line number, record) for each row of a table, in order."""
    text = content.decode("utf-8", "replace")
    named = _named_columns(text.partition("\n")[0])
    separator, names = named or _unnamed_columns(content) or (",", [])
    message = _message_column(names)
    names = ["message" if at == message else _TABLE_NAMES.get(name.lower(), name) for at, name in enumerate(names)]
    number, time = 1, ""
    for at, row in enumerate(_rows(text, separator)):
        if len(row) > len(names) and names and names[-1] == "message":
            row[len(names) - 1 :] = [separator.join(row[len(names) - 1 :])]
        record = {name: _iso(value) for name, value in zip(names, row, strict=False)}
        if "message" not in record and row:
            record = {
                "time": time,
                "message": separator.join(row),
            }  # a line with too few cells continues the row above
        if record.get("message") and not (named and at == 0):
            time = record.get("time", "")
            yield number, {"time": "", **record}
        number += 1 + sum(cell.count("\n") for cell in row)


def _iso(cell: str) -> str:
    """Returns a cell. A time in words is converted to ISO 8601."""
    time = _TIME_IN_WORDS.fullmatch(cell) if cell[-3:].strip() and len(cell) < 40 else None
    if time is None:
        return cell
    if time["month"]:
        return iso(f"{time['month']} {int(time['day']):2} {time['clock']} {time['year']}")
    hour = int(time["hour"]) % 12 + 12 * (time["half"] == "P")
    return f"{time['y']}-{int(time['m']):02}-{int(time['d']):02}T{hour:02}{time['rest']}"


DECODER = Decoder("a table", _recognise)
