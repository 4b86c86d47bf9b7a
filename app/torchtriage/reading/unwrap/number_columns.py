"""Reads rows of numbers below column names, as fastai, skorch, Lightning's CSVLogger and spreadsheets print progress.

Returns the same lines, with its name before each number of such a row: `epoch=3, loss=0.5`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.unwrap.decoder_interface import Decode, Decoded, Decoder, Head, from_lines, numbered_lines

# A line without numbers above one that begins with a number, perhaps with a rule between them. The pattern begins with
# the line feed, which is found at memory speed; a `^` would be tried at each byte.
_HEADED = lazy_regex(rb"\n([^\d\n:=()\[\]{}\"']{8,400})(?=\n(?:[ |+-]*-[ |+-]*\r?\n)?[ |]{0,20}\d)")
_COUNTS = lazy_regex(r"(?i)(?:global_|trainer/)?(?:epoch|step|iter|iteration|batch|update)s?")
_MEASURES = lazy_regex(
    r"(?i)(?:[\w./-]*[_./-])?(?:loss|acc|accuracy|top1|map|perplexity|ppl|bleu|wer|auc|f1|reward)(?:[_./-][\w./-]*)?"
)
_NAME = lazy_regex(r"[A-Za-z_][\w./%@-]{0,40}(?: [A-Za-z][\w./%@-]{0,20})?")
_CELL = lazy_regex(r"[+-]?\d[\d.]*(?:[eE][+-]?\d+)?|(?i:nan|inf|true|false|none)|\d{1,3}(?::\d\d){1,2}|")
_RULE = lazy_regex(r"[\s|+-]*-[\s|+-]*")
_BLANKS = lazy_regex(r"\s{2,}|\t")
_RULE_LINES = 2  # lines between the names and the first row: a rule, a blank line
_MIN_NAMES, _MIN_NUMBERS = 2, 2
_MARKS = ",;|"  # separators of cells, if they are not blanks


class _Table(NamedTuple):
    """The names of the columns and their separator, which is empty for blanks."""

    names: list[str]
    mark: str


def _recognise(head: Head) -> Decode | None:
    sample = b"\n" + head.sample
    for found in _HEADED.finditer(sample):
        table = _table(found[1].decode("utf-8", "replace"))
        rest = sample[found.end() + 1 : found.end() + 4000].decode("utf-8", "replace").split("\n")
        if table is not None and any(_row(table, line) for line in rest[: 1 + _RULE_LINES]):
            return _decode
    return None


def _decode(content: bytes) -> Decoded:
    return from_lines(_named(numbered_lines(content)))


def _named(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    table: _Table | None = None
    for number, line in lines:
        row = _row(table, line) if table is not None else None
        if row is None and not line[:1].isdigit():
            table = _table(line) or (table if not line.strip() or _RULE.fullmatch(line) else None)
        yield number, row or line


def _table(line: str) -> _Table | None:
    """Returns the columns that a line names if one is a count and one is a measurement, else None."""
    mark = max(_MARKS, key=line.count)
    mark = mark if mark in line else ""
    names = _cells(line, mark)
    if len(names) < _MIN_NAMES or not all(map(_NAME.fullmatch, names)):
        return None
    counts = any(map(_COUNTS.fullmatch, names))
    return _Table(names, mark) if counts and any(map(_MEASURES.fullmatch, names)) else None


def _row(table: _Table, line: str) -> str | None:
    """Returns a row of the table with names, or None if the line is not one."""
    cells = _cells(line, table.mark)
    if len(cells) != len(table.names) or not all(map(_CELL.fullmatch, cells)):
        return None
    named = [f"{name}={cell}" for name, cell in zip(table.names, cells, strict=True) if cell]
    return ", ".join(named) if len(named) >= _MIN_NUMBERS else None


def _cells(line: str, mark: str) -> list[str]:
    bare = line.strip()
    if mark == "|":
        bare = bare.strip("|")
    return [cell.strip() for cell in (bare.split(mark) if mark else _BLANKS.split(bare))]


DECODER = Decoder("columns of numbers", _recognise, compares_lines=True, once=True)
