"""A run that stands still while a monitor goes on to print, and those that only look like it."""

from collections.abc import Callable

import pytest

from tests.engine.test_engine import triage
from tests.logs import NO_FAILURE
from torchtriage.engine import Engine

STEPS = [f"step {step} loss {3 / (step + 1):.4f}" for step in range(5)]


def beats(hours: range, clock: str = "[2026-05-01 {:02}:10:05]") -> list[str]:
    """Returns what a monitor prints every hour."""
    return [f"{clock.format(hour)} WATCHER: job 4711 is running since 2026-05-01T00:01:00" for hour in hours]


@pytest.mark.parametrize(
    "clock", ["[2026-05-01 {:02}:10:05]", "2026-05-01T{:02}:10:05Z", "May  1 {:02}:10:05 n3 watcher:"]
)
def test_a_monitor_alone_after_the_last_step_means_a_hang(
    engine: Engine, clock: str, decided: Callable[[], set[str]]
) -> None:
    log = [*STEPS, *beats(range(3, 8), clock)]
    verdict = triage(engine, log)
    assert verdict.root_cause is not None
    assert (verdict.root_cause.entry, verdict.root_cause.confidence) == ("perf.hang", "possible")
    assert verdict.root_cause.evidence[0].text == log[-1]
    assert {"hang"} <= decided()


@pytest.mark.parametrize(
    "behind",
    [
        beats(range(3, 5)),
        [line.replace("03:10", "07:09") for line in beats(range(3, 4))] + beats(range(7, 8)) * 3,
        [*beats(range(3, 8)), "step 5 loss 0.5000"],
        [*beats(range(3, 8)), "saved the last checkpoint"],
        [*beats(range(3, 8)), "Training finished"],
        [line.split("] ")[1] for line in beats(range(3, 8))],
        [f"[2026-05-01 0{hour}:10:05] saving {word}" for hour, word in enumerate(("red", "green", "blue", "white"))],
    ],
    ids=["too few", "too short", "steps go on", "something else", "ended well", "no times", "many forms"],
)
def test_a_run_that_continues_or_ended_is_healthy(engine: Engine, behind: list[str]) -> None:
    assert triage(engine, STEPS, behind).outcome == "healthy"


def test_a_monitor_without_a_run_shows_nothing(engine: Engine) -> None:
    assert triage(engine, beats(range(3, 9))).outcome in NO_FAILURE
