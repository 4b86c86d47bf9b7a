"""Tables as CSV files that a spreadsheet opens without running anything that stands in them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from starlette.responses import Response

_BEGINS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_answer(name: str, rows: Iterable[Sequence[object]]) -> Response:
    """-> the rows, the first of which names the columns, as the file `name`.csv."""
    text = io.StringIO()
    csv.writer(text).writerows([_plain(cell) for cell in row] for row in rows)
    # The mark tells spreadsheets that it is UTF-8.
    content = ("\ufeff" + text.getvalue()).encode("utf-8", "replace")
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"', "Cache-Control": "private, no-cache"}
    return Response(content, media_type="text/csv", headers=headers)


def _plain(cell: object) -> object:
    if cell is None:
        return ""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_BEGINS_A_FORMULA) else cell
