"""How sure a root cause is: its own words, whose code raised it, and whether the log shows what the entry is about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.engine.test_engine import triage
from tests.logs import traceback
from torchtriage.causality import confidence
from torchtriage.engine import Engine

MAIN = ("/job/train.py", 9, "main", "run()")
PACKAGE = ("/env/lib/python3.11/site-packages/torch/nn/functional.py", 3154, "linear", "return f(x)")
LOOKUP = ("/env/lib/python3.11/site-packages/torch/nn/modules/module.py", 1967, "__getattr__", "raise AttributeError(")
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


@pytest.mark.parametrize(
    ("raised", "frames", "sure"),
    [
        ("AttributeError: 'Net' object has no attribute 'heads'", [MAIN, LOOKUP], "likely"),
        ("AttributeError: 'Net' object has no attribute 'heads'", [MAIN, PACKAGE, LOOKUP], "possible"),
        (NO_SHAPE, [MAIN, LOOKUP], "possible"),
    ],
    ids=["the program asked for it", "a package asked for it", "another exception"],
)
def test_the_line_that_asks_a_module_for_an_attribute_counts_not_the_lookup(
    engine: Engine, raised: str, frames: list[tuple[str, int, str, str]], sure: str
) -> None:
    root = triage(engine, traceback(raised, frames)).root_cause
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


SHAPES = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x20 and 16x32)"
ON_CPU = "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"


def _raised(message: str, rank: int | None, clock: str = "") -> list[str]:
    return traceback(message, [MAIN], f"{clock}[rank{rank}]: " if rank is not None else clock)


@pytest.mark.parametrize(
    ("failures", "sure"),
    [
        ([(SHAPES, None, "")], "certain"),
        ([(SHAPES, 0, ""), (ON_CPU, 1, "")], "likely"),
        ([(SHAPES, 0, ""), (SHAPES, 2, ""), (ON_CPU, 1, "")], "certain"),
        ([(SHAPES, 0, "2026-05-01 10:00:00 "), (ON_CPU, 1, "2026-05-01 10:00:01 ")], "likely"),
        ([(SHAPES, 0, "2026-05-01 10:00:00 "), (ON_CPU, 1, "2026-05-01 10:00:09 ")], "certain"),
        ([("flux.TornError: a bolt is loose", None, ""), (SHAPES, None, "")], "likely"),
        ([(SHAPES, 0, ""), ("flux.TornError: a bolt is loose", 1, "")], "certain"),
    ],
    ids=[
        "alone",
        "a rival",
        "ranks agree",
        "the clock does not part them",
        "alone long before",
        "unknown above",
        "below",
    ],
)
def test_another_failure_that_may_be_the_cause_makes_it_likely(
    engine: Engine, failures: list[tuple[str, int | None, str]], sure: str
) -> None:
    root = triage(engine, *(_raised(*failure) for failure in failures)).root_cause
    assert root is not None
    assert (root.entry, root.confidence) == ("usage.shape-mismatch", sure)


def test_an_error_quoted_in_a_sentence_is_not_certain(engine: Engine, decided: Callable[[], set[str]]) -> None:
    line = 'I get the error "CUDA error: device-side assert triggered" in my training, any ideas?'
    root = triage(engine, line).root_cause
    assert root is not None
    assert (root.entry, root.confidence) == ("cuda.device-side-assert", "likely")
    assert {"quoted errors"} <= decided()


def test_a_fallback_is_possible_where_no_frame_shows_whose_code_it_is(engine: Engine) -> None:
    root = triage(engine, NO_SHAPE).root_cause
    assert root is not None
    assert (root.entry, root.confidence) == ("usage.python-error", "possible")


def test_a_piece_that_other_messages_hold_too_is_possible_at_most(engine: Engine) -> None:
    rest = {name: entry for name, entry in engine.knowledge.entries.items() if name != "data.missing-file"}
    raised = traceback("FileNotFoundError: [Errno 2] No such file or directory: '/data/shards/shard-0004.tar'", [MAIN])
    root = triage(Engine(replace(engine.knowledge, entries=rest)), raised).root_cause
    assert root is not None
    assert root.confidence == "possible"


@pytest.mark.parametrize(("points", "word"), [(0.96, "certain"), (0.9, "certain"), (0.72, "likely"), (0.5, "possible")])
def test_the_words_for_points(points: float, word: str) -> None:
    assert confidence.word(points) == word
