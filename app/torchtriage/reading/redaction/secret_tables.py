"""Finds secrets in the columns of tables whose names identify secrets, whatever prints the table.

The separator of cells is derived from the header: bars of any kind, commas, tabs, HTML tags, the signs of LaTeX and
wikis, or only blanks. If it is blanks, a cell belongs to the column with the same start or end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.redaction.open_secret import DIGITS, Begun, Span
from torchtriage.reading.redaction.secret_patterns import secret_kinds
from torchtriage.reading.redaction.secret_values import is_chosen, is_secret, is_sure_name

_Cell = tuple[int, int]  # start and end
_NAME = 60  # bytes of a column's name that are checked
_BARS = rb"\xe2\x94[\x82\x83]|\xe2\x95\x91|\|"
_BLANKS = rb"[ ]{2,}"
_DRAWN = b"\xe2"  # the first byte of the characters for drawing tables
# The separators of a header's and a row's cells, and what identifies them.
_PARTED = tuple(
    (sign, re.compile(header), re.compile(rows))
    for sign, header, rows in (
        (b"|", rb"(?:%b)+" % _BARS, rb"(?:%b)+" % _BARS),
        (_DRAWN, rb"(?:%b)+" % _BARS, rb"(?:%b)+" % _BARS),
        (b"! ", rb"!!?(?=[ ])", rb"\|\|?(?=[ ])"),
        (b"\t", rb"\t", rb"\t"),
        (b";", rb";", rb";"),
        (b",", rb",", rb","),
        (b"<", rb"(?:<[^<>]{1,200}>[ \t]*)+", rb"(?:<[^<>]{1,200}>[ \t]*)+"),
        (b" & ", rb"[ ]&[ ]", rb"[ ]&[ ]"),
        (b"  ", _BLANKS, _BLANKS),
    )
)
_QUOTED = lazy_regex(rb'"[^"]*"')
_WORD = lazy_regex(rb"[^ ]+")
_AROUND = b" \r\"'`*"
_NO_NAME = lazy_regex(rb"\A-|[=:($]|\d{3}")  # an option, a variable or a value
_QUALIFIED = lazy_regex(rb"(?i)\w[ _.-]token\Z|[a-z]Token\Z")
_MAX_WORDS = 4  # words in the name of a column that only blanks separate from the next
_MAX_LINE_LENGTH = 16 << 10  # bytes; a longer line is not a row
_TIMEOUT, _SHORT_TIMEOUT = 20, 5  # lines that are not rows; the second if only blanks separate the cells


class Table(Begun):
    """The rows below a header, in the columns whose names identify secrets. `left` is 0 if there are none."""

    __slots__ = ("_cells", "_columns", "_count", "_parts", "aligned")

    def __init__(self, line: bytes) -> None:
        self.prefix = line.translate(DIGITS) + b"\n"  # not the prefix of a label in the same line
        self.left = 0
        if len(line) > _MAX_LINE_LENGTH:
            return
        for sign, header, rows in _PARTED:
            if sign in line and self._opens(line, header):
                self._parts = rows
                self.aligned = rows.pattern == _BLANKS
                self.left = _SHORT_TIMEOUT if self.aligned else _TIMEOUT
                return

    def _opens(self, line: bytes, parts: re.Pattern[bytes]) -> bool:
        self._cells = _cells(line, parts)
        self._count = len(self._cells)
        if self._count < 2:
            return False
        self._columns = [(at, doubt) for at, cell in enumerate(self._cells) if (doubt := _doubt(line, cell, parts))]
        return bool(self._columns)

    def part(self, line: bytes, plain: bytes) -> Sequence[Span]:
        if len(line) > _MAX_LINE_LENGTH:
            return ()
        cells = _cells(line, self._parts)
        if not self.aligned and len(cells) != self._count:
            return ()
        spans = []
        for column, doubt in self._columns:
            cell = self._aligned(line, cells, column) if self.aligned else cells[column]
            value = line[slice(*cell)] if cell else b""
            if cell and (is_secret(value, doubt, False) or (doubt == 1 and is_chosen(value))):
                spans.append((*cell, "secret"))
        if spans or not self.aligned:
            self.left = _SHORT_TIMEOUT if self.aligned else _TIMEOUT
        return spans

    def _aligned(self, line: bytes, cells: list[_Cell], column: int) -> _Cell | None:
        """Returns the cell of a row in a column: the one with the same index if the numbers of cells are equal, or else
        the word that has the same start or end as the column's name, or overlaps it."""
        indexed = (
            len(cells) == self._count + 1 and self._cells[0][0] > cells[0][0]
        )  # rows have a number that the header does not have
        if len(cells) == self._count or indexed:
            return cells[column + indexed]
        begin, end = self._cells[column]
        words = [word.span() for word in _WORD.finditer(line)]
        for word in words:
            if word[0] == begin or word[1] == end:
                return word
        after = self._cells[column + 1][0] if column + 1 < self._count else len(line)
        return next((word for word in words if word[0] < end <= word[1] <= after), None)


def _cells(line: bytes, parts: re.Pattern[bytes]) -> list[_Cell]:
    """Returns the cells of a line without blanks and quotes around them. Quoted text is not split."""
    quoted = _QUOTED.sub(_as_one, line) if b'"' in line else line
    cells = []
    start = 0
    for part in parts.finditer(quoted):
        end, after = part.span()
        if end:
            cells.append(_stripped(line, start, end))
        start = after
    last = _stripped(line, start, len(line))
    if last[0] < last[1]:
        cells.append(last)
    return cells


def _as_one(quoted: re.Match[bytes]) -> bytes:
    return b'"' + b"_" * (len(quoted[0]) - 2) + b'"'


def _stripped(line: bytes, start: int, end: int) -> _Cell:
    cell = line[start:end]
    inner = cell.lstrip(_AROUND)
    start += len(cell) - len(inner)
    return start, start + len(inner.rstrip(_AROUND))


def _doubt(line: bytes, cell: _Cell, parts: re.Pattern[bytes]) -> int:
    """Returns the doubt about the values below a name, or 0 if the name does not identify a secret."""
    name = line[slice(*cell)]
    if _NO_NAME.search(name[-_NAME:]) or (parts.pattern == _BLANKS and name.count(b" ") >= _MAX_WORDS):
        return 0
    found = _column().search(name[-_NAME:])
    return (1 if found[1] or is_sure_name(name) or _QUALIFIED.search(name) else 2) if found else 0


@cache
def _column() -> re.Pattern[bytes]:
    return re.compile(secret_kinds().openings["column"].encode())
