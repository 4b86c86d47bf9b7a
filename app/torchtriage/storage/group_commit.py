"""Lets several callers share one transaction. A commit waits for the disk, and ten commits take ten times as long as
one."""

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

_MAX_COUNT = 100  # items per transaction: a long one would block all other writers


@dataclass(slots=True, eq=False)
class _Waiting(Generic[Item, Result]):
    item: Item
    done: bool = False
    result: Result | None = None
    error: StorageUnavailable | None = None


class GroupCommit(Generic[Item, Result]):
    """Accepts items from any thread. Items that arrive while others are written are written next, in one
    transaction."""

    def __init__(self, patience: float = 0, share: float = 0.5) -> None:
        """The first item waits at most `patience` seconds, until this share of the items announced by `coming` has
        arrived."""
        self._patience, self._share = patience, share
        self._coming = 0
        self._waiting: list[_Waiting[Item, Result]] = []
        self._adding = threading.Condition()
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="group-commit")

    @property
    def waiting(self) -> int:
        """The number of items whose write has not started."""
        return len(self._waiting)

    @contextmanager
    def coming(self) -> Iterator[None]:
        """Announces an item, which is created and put inside the `with` block."""
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
        """Returns a future with the item's result after the commit, or with the error that `work` raised.

        `work` handles items in one transaction and returns their results in order; all succeed, or none. `after` is
        called with the item before the future ends, even after an error.
        """
        mine = _Waiting[Item, Result](item)
        with self._adding:
            self._waiting.append(mine)
            self._adding.notify_all()
            # Submitted in the same order, so that the writer's current item is the first in the list, or is already
            # done.
            return self._writer.submit(self._write_item, mine, work, after)

    def close(self, wait: bool = True) -> None:
        """Accepts no more items, and waits until all are written."""
        self._writer.shutdown(wait)

    def _write_item(
        self, mine: _Waiting[Item, Result], work: Work[Item, Result], after: Callable[[Item], None]
    ) -> Result:
        try:
            return self._written(mine, work)
        finally:
            after(mine.item)

    def _written(self, mine: _Waiting[Item, Result], work: Work[Item, Result]) -> Result:
        try:
            if mine in self._waiting[:1]:
                self._write_batches(work)
            if not mine.done and mine.error is None:  # it is alone, or another item may have made the whole batch fail
                (mine.result,) = work([mine.item])
        except StorageUnavailable as error:
            mine.error = error
            self._fail_waiting(error)
        if mine.error is not None:
            raise mine.error
        return cast(Result, mine.result)

    def _write_batches(self, work: Work[Item, Result]) -> None:
        with self._adding:
            if self._patience:
                self._adding.wait_for(lambda: len(self._waiting) >= self._share * self._coming, self._patience)
            batch, self._waiting = self._waiting[:_MAX_COUNT], self._waiting[_MAX_COUNT:]
        if len(batch) == 1:
            return  # the caller handles a single item, and its error
        try:
            with suppress(SQLAlchemyError, ValueError):  # one item failed: each caller then handles its own alone
                for one, result in zip(batch, work([one.item for one in batch]), strict=True):
                    one.result, one.done = result, True
        except StorageUnavailable as error:
            for one in batch:
                one.error = error
            raise

    def _fail_waiting(self, error: StorageUnavailable) -> None:
        """Fails the items that wait: they have waited as long, and each would only wait for the same error."""
        with self._adding:
            for one in self._waiting:
                one.error = error
            self._waiting.clear()
