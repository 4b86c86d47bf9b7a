"""How sure a root cause is: its own words, whose code raised it, and whether the log shows what the entry is about."""

from __future__ import annotations

import pytest

from tests.engine.test_engine import triage
from tests.logs import traceback
from torchtriage.causality import confidence
from torchtriage.engine import Engine

MAIN = ("/job/train.py", 9, "main", "run()")
PACKAGE = ("/env/lib/python3.11/site-packages/torch/nn/functional.py", 3154, "linear", "return f(x)")
OF_PYTHON = ("/usr/lib/python3.11/json/encoder.py", 180, "default", "raise TypeError(o)")
NO_SHAPE = "TypeError: the flange is not a bolt"


@pytest.mark.parametrize(
    ("frames", "sure"),
    [([MAIN], "likely"), ([MAIN, OF_PYTHON], "likely"), ([MAIN, PACKAGE], "possible")],
    ids=["the program's own code", "a module of Python", "an installed package"],
)
def test_a_message_that_no_sign_knows_counts_less_where_a_package_raised_it(
    engine: Engine, frames: list[tuple[str, int, str, str]], sure: str
) -> None:
    root = triage(engine, traceback(NO_SHAPE, frames)).root_cause
    assert root is not None
    assert (root.entry, root.confidence) == ("usage.python-error", sure)


def test_a_known_message_is_certain_wherever_it_is_raised(engine: Engine) -> None:
    raised = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x20 and 16x32)"
    root = triage(engine, traceback(raised, [MAIN, PACKAGE])).root_cause
    assert root is not None
    assert (root.entry, root.confidence) == ("usage.shape-mismatch", "certain")


def test_a_case_whose_framework_is_not_in_the_log_is_not_certain(engine: Engine) -> None:
    raised = traceback(
        "AssertionError: AnnealingLR: class input value 1e-06 and checkpointvalue 1e-05 for minimum do not match",
        [MAIN],
    )
    alone = triage(engine, raised).root_cause
    beside = triage(engine, "using megatron/core/optimizer_param_scheduler.py", raised).root_cause
    assert alone is not None
    assert beside is not None
    assert (alone.entry, alone.confidence) == ("megatron.config", "likely")
    assert (beside.entry, beside.confidence) == ("megatron.config", "certain")


def test_a_reworded_message_is_possible_at_most(engine: Engine) -> None:
    reworded = "RuntimeError: Trying to go backward through the graph a second time, after the saved values were freed"
    root = triage(engine, traceback(reworded, [MAIN])).root_cause
    assert root is not None
    assert root.confidence == "possible"


@pytest.mark.parametrize(("points", "word"), [(0.96, "certain"), (0.9, "certain"), (0.72, "likely"), (0.5, "possible")])
def test_the_words_for_points(points: float, word: str) -> None:
    assert confidence.word(points) == word
