from __future__ import annotations

import time
from contextlib import ExitStack

from torchtriage.services.upload_progress import Accepting


def waited(accepting: Accepting, seconds: float) -> float:
    """-> for how long work that can wait gave way."""
    began = time.monotonic()
    accepting.give_way(seconds)
    return time.monotonic() - began


def test_nobody_waits_while_few_logs_are_taken_in() -> None:
    accepting = Accepting()
    assert waited(accepting, 60) < 30
    with accepting.one(), accepting.one():
        assert waited(accepting, 60) < 30


def test_work_that_can_wait_does_so_for_a_while_in_a_storm() -> None:
    accepting = Accepting()
    with ExitStack() as storm:
        for _ in range(8):
            storm.enter_context(accepting.one())
        time.sleep(0.3)  # they are what there was lately
        assert waited(accepting, 0.3) >= 0.3
    assert waited(accepting, 60) < 30


def test_a_moment_without_any_is_no_end_of_a_storm() -> None:
    accepting = Accepting()
    with ExitStack() as storm:
        for _ in range(1000):
            storm.enter_context(accepting.one())
        time.sleep(0.3)
    assert waited(accepting, 0.02) >= 0.02
