"""Which ranks failed alike, where only torchelastic's report names them."""

import pytest

from tests.logs import PEER_CLOSED, WAITING, report, text, traceback
from torchtriage.answer.first_screen import first_screen
from torchtriage.domain.verdict import Verdict
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

FAILED = traceback("KeyError: 'decay'", [("/job/train.py", 14, "build", "decay = options['decay']")])


def triage(engine: Engine, *parts: str | list[str]) -> Verdict:
    return engine.triage(from_bytes(text(*parts)))


def test_ranks_that_exit_together_with_one_code_are_named(engine: Engine) -> None:
    verdict = triage(engine, FAILED, report((0, 1), [(1, 1), (2, 1)]))
    assert verdict.answer is not None
    assert verdict.answer.says is not None
    assert verdict.answer.says.endswith("Ranks 0-2 exited within a second, each with code 1.")
    assert first_screen(verdict, "en").where[0] == "seen on ranks 0-2"


@pytest.mark.parametrize(
    "parts",
    [
        [FAILED, report((0, 1), [(1, -15), (2, -15)])],  # the launcher stopped the others
        [FAILED, traceback(PEER_CLOSED, WAITING), report((0, 1), [(1, 1)])],  # the other one lost its peer
        [traceback("KeyError: 'decay'", prefix="[rank0]: "), report((0, 1), [(1, 1)])],  # the message names its rank
    ],
)
def test_ranks_that_may_have_failed_differently_are_not(engine: Engine, parts: list[list[str]]) -> None:
    verdict = triage(engine, *parts)
    assert verdict.answer is not None
    assert "exited_ranks" not in verdict.answer.values
    assert first_screen(verdict, "en").where[0] == "rank 0"
