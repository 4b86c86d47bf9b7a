"""Counts the statements that a test's database is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event

from torchtriage.storage.database import Database


@contextmanager
def counted_statements(database: Database) -> Iterator[Counter[str]]:
    """Returns how often each statement is sent until this is left; with several sets of values, once for each of them."""
    counted: Counter[str] = Counter()

    def count(_connection: Any, _cursor: Any, statement: str, values: Any, _context: Any, many: bool) -> None:
        counted[statement] += len(values) if many else 1

    event.listen(database.engine, "before_cursor_execute", count)
    try:
        yield counted
    finally:
        event.remove(database.engine, "before_cursor_execute", count)
