from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from torchtriage.storage.database import StorageUnavailable
from torchtriage.storage.group_commit import GroupCommit


class Desk:
    """Does what is asked of it, the first time only when it is told to: what comes meanwhile waits together."""

    def __init__(self, bad: int | None = None, error: Exception | None = None) -> None:
        self.batches: list[list[int]] = []
        self.done: list[int] = []
        self.begun, self.go_on = threading.Event(), threading.Event()
        self._bad, self._error = bad, error

    def work(self, items: list[int]) -> list[int]:
        self.batches.append(items)
        self.begun.set()
        assert self.go_on.wait(60)
        if self._bad in items and self._error is not None:
            raise self._error
        return [item * 10 for item in items]

    def after(self, item: int) -> None:
        self.done.append(item)


def asked(desk: Desk, count: int) -> list[int | Exception]:
    """Returns what each of `count` threads got, of which the first alone is worked on at once."""
    together = GroupCommit[int, int]()

    def ask(item: int) -> int | Exception:
        try:
            return together.put(item, desk.work, desk.after).result()
        except (StorageUnavailable, ValueError) as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(ask, 0)]
        assert desk.begun.wait(60)
        futures += [pool.submit(ask, item) for item in range(1, count)]
        while together.waiting < count - 1:
            desk.go_on.wait(0.01)
        desk.go_on.set()
        return [future.result() for future in futures]


def test_items_that_arrive_during_a_write_are_written_together() -> None:
    desk = Desk()
    assert asked(desk, 9) == [item * 10 for item in range(9)]
    assert [sorted(batch) for batch in desk.batches] == [[0], list(range(1, 9))]


def test_an_item_that_fails_fails_no_other() -> None:
    desk = Desk(3, ValueError("three"))
    got = asked(desk, 5)
    assert isinstance(got[3], ValueError)
    assert [got[item] for item in (0, 1, 2, 4)] == [0, 10, 20, 40]
    assert sorted(desk.done) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("count", [5, 150])
def test_an_unavailable_database_is_asked_once_for_all_items(count: int) -> None:
    """Also for those who did not fit into one transaction: each that is tried can take as long as the first."""
    desk = Desk(3, StorageUnavailable("away"))
    got = asked(desk, count)
    assert got[0] == 0
    assert all(isinstance(one, StorageUnavailable) for one in got[1:])
    assert len(desk.batches) == 2


@pytest.mark.parametrize("error", [ValueError("no"), StorageUnavailable("away")])
def test_a_single_item_fails_with_its_error(error: Exception) -> None:
    desk = Desk(0, error)
    desk.go_on.set()
    together = GroupCommit[int, int]()
    with pytest.raises(type(error)):
        together.put(0, desk.work, desk.after).result()
    assert together.put(1, desk.work, desk.after).result() == 10


def test_a_single_item_does_not_wait() -> None:
    desk = Desk()
    desk.go_on.set()
    together = GroupCommit[int, int](patience=60)
    with together.coming():
        assert together.put(0, desk.work).result(timeout=30) == 0


@pytest.mark.parametrize(("coming", "options"), [(6, {}), (3, {"share": 1})], ids=["half", "all"])
def test_the_first_waits_for_its_share_of_the_announced_items(coming: int, options: dict[str, float]) -> None:
    desk = Desk()
    desk.go_on.set()
    together = GroupCommit[int, int](patience=60, **options)
    with ExitStack() as stack:
        for _ in range(coming):
            stack.enter_context(together.coming())
        futures = [together.put(item, desk.work) for item in range(2)]
        assert not desk.begun.wait(0.2)
        futures.append(together.put(2, desk.work))
        assert [future.result(timeout=30) for future in futures] == [0, 10, 20]
    assert desk.batches == [[0, 1, 2]]


def test_announced_items_that_do_not_come_are_not_waited_for() -> None:
    desk = Desk()
    desk.go_on.set()
    together = GroupCommit[int, int](patience=0.2)
    with together.coming(), together.coming(), together.coming():
        assert together.put(0, desk.work).result(timeout=30) == 0
