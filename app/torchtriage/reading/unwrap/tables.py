"""Tables with a column of messages, as consoles export them: with names above the columns, or without.

In: the bytes of a file; out: its rows as records, each with the number of its line.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from torchtriage.reading.prefixes.times import iso
from torchtriage.reading.unwrap.json_documents import LARGEST
from torchtriage.reading.unwrap.json_records import is_beside, is_said

_MARKS = ",;\t"
_SOME = 8  # rows by which a table without names is told
_FEWEST = 4
_SAMPLE = 16 << 10  # characters
_CELL = re.compile(r"[@\w][\w @.:/\[\]()-]{0,60}")
# Names of columns that need no other's to be told by.
_OF_TABLES = {"log", "textpayload", "body", "_raw", "text", "message", "@message", "msg", "content", "line", "日志", "日志内容",
              "内容", "消息"}  # fmt: skip
_TABLE_NAMES = {"date": "time", "@timestamp": "time", "timestamp": "time", "tsns": "ts"}
_DATED = re.compile(
    r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d)?[.\d]*(?:Z| UTC|[+-]\d\d:?\d\d)?|1\d{9}(?:\d{3}){0,3}(?:\.\d+)?"
)
# Kibana's, Azure's
_SPELLED = re.compile(
    r"(?P<month>[A-Z][a-z]{2}) (?P<day>\d{1,2}), (?P<year>\d{4}) @ (?P<clock>\d\d:\d\d:\d\d(?:\.\d+)?)"
    r"|(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<y>\d{4}), (?P<hour>\d{1,2})(?P<rest>:\d\d:\d\d(?:\.\d+)?) (?P<half>[AP])M"
)
_BEGINS = re.compile(rf"\"?(?:{_DATED.pattern}|{_SPELLED.pattern})\"?[{_MARKS}]")
_THOUSANDTHS = re.compile(r"\d{3}\b")  # of a logger's time, which a comma parts from it


def is_table(sample: bytes) -> bool:
    """-> whether a file that begins with `sample` is a table: its first line names columns, one of which holds messages, or
    its rows begin with a time and have as many cells."""
    head = sample[:2000].partition(b"\n")[0].decode("utf-8", "replace")
    return _columns(head) is not None or (bool(_BEGINS.match(head)) and _shape(sample) is not None)


def _shape(sample: bytes) -> tuple[str, list[str]] | None:
    """-> what parts the columns of a table without names, and names for them; None where it is none."""
    text = sample[:_SAMPLE].decode("utf-8", "replace")
    begins = _BEGINS.match(text)
    if begins is None:
        return None
    mark = begins[0][-1]
    rows = [row for _, row in zip(range(_SOME), _rows(text, mark), strict=False)]
    if len(rows) < _FEWEST or len({len(row) for row in rows}) > 1 or len(rows[0]) < 2:
        return None
    if not all(_DATED.fullmatch(row[0]) or _SPELLED.fullmatch(row[0]) for row in rows) or _THOUSANDTHS.match(
        rows[0][1]
    ):
        return None
    told = max(
        range(1, len(rows[0])), key=lambda at: (len({row[at] for row in rows}), sum(len(row[at]) for row in rows))
    )
    if not any(map(str.isalpha, "".join(row[told] for row in rows))):
        return None
    return mark, ["time", *("message" if at == told else f"cell {at}" for at in range(1, len(rows[0])))]


def _rows(text: str, mark: str) -> Iterator[list[str]]:
    import csv  # here, as few files are tables

    csv.field_size_limit(LARGEST)
    # What a logger parted by tabs has no quotes of its own.
    bare = mark == "\t" and '""' not in text
    rows = io.StringIO(text, newline="")
    try:
        yield from csv.reader(rows, delimiter=mark, quoting=csv.QUOTE_NONE if bare else csv.QUOTE_MINIMAL)
    except csv.Error:
        return


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


def in_table(content: bytes) -> Iterator[tuple[int, dict[str, str]]]:
    """Yields (line number, record) for each row of a table, in its order."""
    text = content.decode("utf-8", "replace")
    named = _columns(text.partition("\n")[0])
    mark, names = named or _shape(content) or (",", [])
    said = _message(names)
    names = ["message" if at == said else _TABLE_NAMES.get(name.lower(), name) for at, name in enumerate(names)]
    number, time = 1, ""
    for at, row in enumerate(_rows(text, mark)):
        if len(row) > len(names) and names and names[-1] == "message":
            row[len(names) - 1 :] = [mark.join(row[len(names) - 1 :])]
        told = {name: _iso(value) for name, value in zip(names, row, strict=False)}
        if "message" not in told and row:
            told = {"time": time, "message": mark.join(row)}  # What has too few cells goes on with the row above.
        if told.get("message") and not (named and at == 0):
            time = told.get("time", "")
            yield number, {"time": "", **told}
        number += 1 + sum(cell.count("\n") for cell in row)


def _iso(cell: str) -> str:
    """-> a cell; as ISO 8601, where it is a time in words."""
    told = _SPELLED.fullmatch(cell) if cell[-3:].strip() and len(cell) < 40 else None
    if told is None:
        return cell
    if told["month"]:
        return iso(f"{told['month']} {int(told['day']):2} {told['clock']} {told['year']}")
    hour = int(told["hour"]) % 12 + 12 * (told["half"] == "P")
    return f"{told['y']}-{int(told['m']):02}-{int(told['d']):02}T{hour:02}{told['rest']}"
