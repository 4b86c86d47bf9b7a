"""Exports tables as CSV files in which a spreadsheet runs no formulas."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from starlette.responses import Response, StreamingResponse

_PIECE = 1 << 16  # characters
# Spreadsheets take the full-width signs of a Chinese keyboard for the same.
_BEGINS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def csv_answer(name: str, rows: Iterable[Sequence[object]]) -> Response:
    """Returns the rows as the file `name`.csv, sent as a stream. The first row contains the column names."""
    return StreamingResponse(
        pieces(_lines(rows)), media_type="text/csv; charset=utf-8", headers=file_headers(f"{name}.csv")
    )


def pieces(texts: Iterable[str]) -> Iterator[bytes]:
    """Yields the texts joined into larger pieces, to send fewer of them."""
    waiting: list[str] = []
    size = 0
    for text in texts:
        waiting.append(text)
        size += len(text)
        if size >= _PIECE:
            yield "".join(waiting).encode("utf-8", "replace")
            waiting, size = [], 0
    yield "".join(waiting).encode("utf-8", "replace")


def file_headers(name: str) -> dict[str, str]:
    """Returns the headers that make a browser save an answer as a file."""
    return {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "private, no-cache"}


def _lines(rows: Iterable[Sequence[object]]) -> Iterator[str]:
    line = io.StringIO()
    writer = csv.writer(line)
    yield "\ufeff"  # tells spreadsheets that it is UTF-8
    for row in rows:
        writer.writerow([_plain(cell) for cell in row])
        yield line.getvalue()
        line.seek(0)
        line.truncate()


def _plain(cell: object) -> object:
    if cell is None:
        return ""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_BEGINS_A_FORMULA) else cell
