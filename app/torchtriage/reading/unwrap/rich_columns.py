"""Logs that rich set in columns: time, level, message, and at the right edge the place in the code. A long message goes on
below itself. The first lines in, whether they are set so; all lines in, those that were logged out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

_FEWEST = 3  # rows
_SAMPLE = 200  # lines
_NEARLY_ALL = 0.9  # of the rows
_ROW = re.compile(
    r"(?P<label>\[[a-z]+\d{1,6}\]: ?)?(?P<time>[\[(]?\d[\d/:., TZ+-]{4,30}[\])]?(?= )|)(?P<gap> *)"
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) {1,4}(?P<said>.*)"
)
_LEVEL = 9  # characters of its column
_PLACE = re.compile(r" [\w.<>-]{1,60}\.py:\d{1,6} *$")
_LABEL = re.compile(r"\[[a-z]+\d{1,6}\]: ?")
_BOX = "╭│╰"


class _Open(NamedTuple):
    """A row whose message may go on below. `room`: characters of its column; `last`: its last piece; `at`: its place
    among the lines that came out."""

    column: int
    room: int
    last: str
    at: int


def in_columns(lines: Sequence[str]) -> bool:
    """-> whether a file, of which these are the first lines, was set in columns: rows end at one right edge, with a place
    in the code or padded."""
    some = lines[:_SAMPLE]
    rows = [line for line in some if _ROW.match(line)]
    if len(rows) < _FEWEST:
        return False
    placed = [len(line.rstrip()) for line in rows if _PLACE.search(line)]
    if len(placed) >= _FEWEST and len(placed) * 2 > len(rows):
        return _equal(placed)
    return _equal([len(line) for line in rows]) and sum(line.endswith("  ") for line in rows) * 2 > len(rows)


def _equal(lengths: Sequence[int]) -> bool:
    """-> whether lines end at one edge, but for those with characters that are wider than others."""
    return Counter(lengths).most_common(1)[0][1] >= _NEARLY_ALL * len(lengths)


def logged(lines: Sequence[str]) -> tuple[list[str], list[int]]:
    """-> the lines as they were logged, and the number from 1 of each one's first piece."""
    told: list[str] = []
    numbers: list[int] = []
    rows: dict[str, _Open] = {}
    times: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        row = _ROW.match(line)
        label = (row["label"] if row else found[0] if (found := _LABEL.match(line)) else "") or ""
        if row:
            times[label] = time = row["time"] or times.get(label, "")
            rows[label], said = _opened(line, row, len(told))
            whole = f"{label}{time} {row['level']:8} {said}" if time else f"{label}{row['level']:8} {said}"
        elif (
            (above := rows.get(label)) and not line[len(label) : above.column].strip() and line[above.column :].strip()
        ):
            said = line[above.column :].rstrip()
            rows[label] = above._replace(last=said, at=len(told))
            if _goes_on(above, said):
                told[above.at] += said if len(above.last) == above.room and " " not in above.last else f" {said}"
                rows[label] = above._replace(last=said)
                continue
            whole = label + said
        else:
            rows.pop(label, None)
            whole = line
        told.append(whole)
        numbers.append(number)
    return told, numbers


def _opened(line: str, row: re.Match[str], at: int) -> tuple[_Open, str]:
    """-> a row that may go on below, and the first piece of its message."""
    column = row.start("level") + _LEVEL
    place = _PLACE.search(line, column)
    said = (line[column : place.start()] if place else line[column:]).rstrip()
    return _Open(column, (place.start() if place else len(line)) - column, said, at), said


def _goes_on(above: _Open, said: str) -> bool:
    """-> whether a piece goes on with the one above it: its first word had no place there."""
    if said[:1].isspace() or said[0] in _BOX or above.last[:1] in _BOX:
        return False
    return len(above.last) + 1 + len(said.partition(" ")[0]) > above.room
