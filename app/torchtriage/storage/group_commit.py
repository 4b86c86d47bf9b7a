"""Lets callers that each have something to write share one transaction: a commit waits for the disk, and ten commits
wait ten times as long as one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from sqlalchemy.exc import SQLAlchemyError

from torchtriage.storage.database import StorageUnavailable

Item = TypeVar("Item")
Result = TypeVar("Result")
Work = Callable[[list[Item]], list[Result]]

_MOST = 100  # items in a transaction: one that goes on for long keeps all other writers waiting


@dataclass(slots=True, eq=False)
class _Waiting(Generic[Item, Result]):
    item: Item
    done: bool = False
    result: Result | None = None
    error: StorageUnavailable | None = None


class GroupCommit(Generic[Item, Result]):
    """Hand items in from any thread: what comes while some of them are written is written next, all at once."""

    def __init__(self, patience: float = 0, share: float = 0.5) -> None:
        """`patience` is for how many seconds the first item waits at most, until this share of those that are `coming`
        are there."""
        self._patience, self._share = patience, share
        self._coming = 0
        self._waiting: list[_Waiting[Item, Result]] = []
        self._adding = threading.Condition()
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="group-commit")

    @property
    def waiting(self) -> int:
        """How many items nobody has begun with."""
        return len(self._waiting)

    @contextmanager
    def coming(self) -> Iterator[None]:
        """Within this an item is made, and put."""
        with self._adding:
            self._coming += 1
        try:
            yield
        finally:
            with self._adding:
                self._coming -= 1
                self._adding.notify_all()

    def put(
        self, item: Item, work: Work[Item, Result], after: Callable[[Item], None] = lambda _: None
    ) -> Future[Result]:
        """-> what becomes of this item, once its transaction is committed, or what `work` raised for it.

        `work` does items in one transaction -> what became of each, in their order; all of them, or none. `after` is
        called for the item before the answer is there, whatever became of it.
        """
        mine = _Waiting[Item, Result](item)
        with self._adding:
            self._waiting.append(mine)
            self._adding.notify_all()
            # In the same order, so that whoever's turn it is stands first or has been done with others.
            return self._writer.submit(self._do, mine, work, after)

    def close(self, wait: bool = True) -> None:
        """Takes nothing more, and waits until all is written."""
        self._writer.shutdown(wait)

    def _do(self, mine: _Waiting[Item, Result], work: Work[Item, Result], after: Callable[[Item], None]) -> Result:
        try:
            return self._written(mine, work)
        finally:
            after(mine.item)

    def _written(self, mine: _Waiting[Item, Result], work: Work[Item, Result]) -> Result:
        try:
            if mine in self._waiting[:1]:
                self._do_all(work)
            if not mine.done and mine.error is None:  # alone, or another item may be why all of them failed
                (mine.result,) = work([mine.item])
        except StorageUnavailable as error:
            mine.error = error
            self._fail_waiting(error)
        if mine.error is not None:
            raise mine.error
        return cast(Result, mine.result)

    def _do_all(self, work: Work[Item, Result]) -> None:
        with self._adding:
            if self._patience:
                self._adding.wait_for(lambda: len(self._waiting) >= self._share * self._coming, self._patience)
            batch, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
        if len(batch) == 1:
            return  # fails, if it does, where it is asked for
        try:
            with suppress(SQLAlchemyError, ValueError):
                for one, result in zip(batch, work([one.item for one in batch]), strict=True):
                    one.result, one.done = result, True
        except StorageUnavailable as error:
            for one in batch:
                one.error = error
            raise

    def _fail_waiting(self, error: StorageUnavailable) -> None:
        """Those in line have waited as long already; each of them would wait in vain once more."""
        with self._adding:
            for one in self._waiting:
                one.error = error
            self._waiting.clear()
