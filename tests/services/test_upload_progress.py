from __future__ import annotations

from contextlib import ExitStack

import pytest

from torchtriage.services import upload_progress
from torchtriage.services.upload_progress import UploadCounter


class Clock:
    """Stands for the module `time`: it goes on when somebody sleeps, and only then."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(upload_progress, "time", made)
    return made


def waited(clock: Clock, counter: UploadCounter, seconds: float) -> float:
    """Returns for how long work that can wait gave way."""
    began = clock.now
    counter.wait_for_uploads(seconds)
    return clock.now - began


def test_nobody_waits_while_few_logs_are_uploaded(clock: Clock) -> None:
    counter = UploadCounter()
    assert waited(clock, counter, 60) == 0
    with counter.counted(), counter.counted():
        clock.sleep(1)
        assert waited(clock, counter, 60) == 0


def test_triage_waits_a_while_during_many_uploads(clock: Clock) -> None:
    counter = UploadCounter()
    with ExitStack() as storm:
        for _ in range(8):
            storm.enter_context(counter.counted())
        clock.sleep(0.3)  # they are what there was lately
        assert waited(clock, counter, 0.3) == pytest.approx(0.3)
    assert 0 < waited(clock, counter, 60) < 1


def test_a_moment_without_uploads_does_not_end_the_wait(clock: Clock) -> None:
    counter = UploadCounter()
    with ExitStack() as storm:
        for _ in range(1000):
            storm.enter_context(counter.counted())
        clock.sleep(0.3)
    assert waited(clock, counter, 0.02) == pytest.approx(0.02)
