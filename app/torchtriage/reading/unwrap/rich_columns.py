"""Restores logs that the library rich printed in columns: time, level, message, and the code line at the right edge. A
long message continues in the lines below."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.unwrap.decoder_interface import Decode, Decoder, Head, Rejoin, from_layout

_MIN_COUNT = 3  # rows
_FIRST = 40  # lines that decide for most files
_SAMPLE = 200  # lines
_NEARLY_ALL = 0.9  # share of the rows
_ROW = lazy_regex(
    r"(?P<label>\[[a-z]+\d{1,6}\]: ?)?(?P<time>[\[(]?\d[\d/:., TZ+-]{4,30}[\])]?(?= )|)(?P<gap> *)"
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) {1,4}(?P<message>.*)"
)
_LEVEL = 9  # characters of the column
_CODE_LINE = lazy_regex(r" [\w.<>-]{1,60}\.py:\d{1,6} *$")
_LABEL = lazy_regex(r"\[[a-z]+\d{1,6}\]: ?")
_BOX = "╭│╰"
_BOX_SIDE = "│".encode()


class _Open(NamedTuple):
    """A row whose message may continue below. `column` is the start of its message, `width` the width of the message
    column in characters, `last` the last piece of the message, `row` the index of the row in the result."""

    column: int
    width: int
    last: str
    row: int


def _recognise(head: Head) -> Decode | None:
    return from_layout(find_columns(head))


def find_columns(head: Head) -> Rejoin | None:
    """Returns a function that restores rows as they were logged, or None if a file has no columns."""
    first = head.lines[:_FIRST]
    padded = sum(line.endswith(b"  ") or b".py:" in line[-16:] for line in first)
    boxed = sum(_BOX_SIDE in line for line in first)  # a traceback in its box may fill them
    if padded < _MIN_COUNT and boxed * 2 <= len(first):
        return None
    return rejoin_columns if in_columns(head.texts) else None


def in_columns(lines: Sequence[str]) -> bool:
    """Returns whether a file was printed in columns, from its first lines: rows end at one right edge, with a code line
    or padding."""
    some = lines[:_SAMPLE]
    rows = [line for line in some if _ROW.match(line)]
    if len(rows) < _MIN_COUNT:
        return False
    with_code = [len(line.rstrip()) for line in rows if _CODE_LINE.search(line)]
    if len(with_code) >= _MIN_COUNT and len(with_code) * 2 > len(rows):
        return _equal(with_code)
    return _equal([len(line) for line in rows]) and sum(line.endswith("  ") for line in rows) * 2 > len(rows)


def _equal(lengths: Sequence[int]) -> bool:
    """Returns whether lines end at one edge. Lines with wide characters are ignored."""
    return Counter(lengths).most_common(1)[0][1] >= _NEARLY_ALL * len(lengths)


def rejoin_columns(lines: Sequence[str]) -> tuple[list[str], list[int]]:
    """Returns the lines as they were logged, and the number (from 1) of the first piece of each."""
    found: list[str] = []
    numbers: list[int] = []
    rows: dict[str, _Open] = {}
    times: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        row = _ROW.match(line)
        label = (row["label"] if row else hit[0] if (hit := _LABEL.match(line)) else "") or ""
        if row:
            times[label] = time = row["time"] or times.get(label, "")
            rows[label], message = _opened(line, row, len(found))
            whole = f"{label}{time} {row['level']:8} {message}" if time else f"{label}{row['level']:8} {message}"
        elif (
            (above := rows.get(label)) and not line[len(label) : above.column].strip() and line[above.column :].strip()
        ):
            piece = line[above.column :].rstrip()
            rows[label] = above._replace(last=piece, row=len(found))
            if _goes_on(above, piece):
                cut_in_word = len(above.last) == above.width and " " not in above.last
                found[above.row] += piece if cut_in_word else f" {piece}"
                rows[label] = above._replace(last=piece)
                continue
            whole = label + piece
        else:
            rows.pop(label, None)
            whole = line
        found.append(whole)
        numbers.append(number)
    return found, numbers


def _opened(line: str, row: re.Match[str], index: int) -> tuple[_Open, str]:
    """Returns a row that may continue below, and the first piece of its message."""
    column = row.start("level") + _LEVEL
    code_line = _CODE_LINE.search(line, column)
    end = code_line.start() if code_line else len(line)
    message = line[column:end].rstrip()
    return _Open(column, end - column, message, index), message


def _goes_on(above: _Open, piece: str) -> bool:
    """Returns whether a piece continues the one above, because its first word had no room there."""
    if piece[:1].isspace() or piece[0] in _BOX or above.last[:1] in _BOX:
        return False
    return len(above.last) + 1 + len(piece.partition(" ")[0]) > above.width


DECODER = Decoder("rich's columns", _recognise, compares_lines=True)
