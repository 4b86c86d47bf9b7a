from __future__ import annotations

import time
from contextlib import ExitStack

from torchtriage.services.upload_progress import UploadCounter


def waited(counter: UploadCounter, seconds: float) -> float:
    """-> for how long work that can wait gave way."""
    began = time.monotonic()
    counter.wait_until_few(seconds)
    return time.monotonic() - began


def test_nobody_waits_while_few_logs_are_taken_in() -> None:
    counter = UploadCounter()
    assert waited(counter, 60) < 30
    with counter.counted(), counter.counted():
        assert waited(counter, 60) < 30


def test_work_that_can_wait_does_so_for_a_while_in_a_storm() -> None:
    counter = UploadCounter()
    with ExitStack() as storm:
        for _ in range(8):
            storm.enter_context(counter.counted())
        time.sleep(0.3)  # they are what there was lately
        assert waited(counter, 0.3) >= 0.3
    assert waited(counter, 60) < 30


def test_a_moment_without_any_is_no_end_of_a_storm() -> None:
    counter = UploadCounter()
    with ExitStack() as storm:
        for _ in range(1000):
            storm.enter_context(counter.counted())
        time.sleep(0.3)
    assert waited(counter, 0.02) >= 0.02
