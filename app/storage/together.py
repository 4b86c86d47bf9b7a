"""Lets threads that each have something to write share one transaction: SQLite has one writer, whose commit waits for
the disk, and ten commits wait ten times as long as one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from sqlalchemy.exc import SQLAlchemyError

from app.storage.database import StorageUnavailable

Item = TypeVar("Item")
Result = TypeVar("Result")
Work = Callable[[list[Item]], list[Result]]


@dataclass(slots=True, eq=False)
class _Waiting(Generic[Item, Result]):
    item: Item
    result: Result | None = None
    error: StorageUnavailable | None = None


class Together(Generic[Item, Result]):
    """Call `do` from many threads: what comes while one of them writes is written by the next, all at once."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting[Item, Result]] = []
        self._adding, self._working = threading.Lock(), threading.Lock()

    @property
    def waiting(self) -> int:
        """How many items nobody has begun with."""
        return len(self._waiting)

    def do(self, item: Item, work: Work[Item, Result]) -> Result:
        """-> what became of this item, once its transaction is committed. Raises what `work` raises for it.

        `work` does items in one transaction -> what became of each, in their order; all of them, or none.
        """
        mine = _Waiting[Item, Result](item)
        with self._adding:
            self._waiting.append(mine)
        with self._working:
            if mine in self._waiting:
                self._do_all(work)
            if mine.error is not None:
                raise mine.error
            if mine.result is None:  # another item may be why all of them failed
                (mine.result,) = work([item])
        return mine.result

    def _do_all(self, work: Work[Item, Result]) -> None:
        with self._adding:
            batch, self._waiting = self._waiting, []
        if len(batch) == 1:
            return  # fails, if it does, where it is asked for
        try:
            with suppress(SQLAlchemyError, ValueError):
                for one, result in zip(batch, work([one.item for one in batch]), strict=True):
                    one.result = result
        except StorageUnavailable as error:
            for one in batch:  # the next one would wait in vain as long
                one.error = error
