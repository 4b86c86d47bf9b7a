"""All kinds of facts together."""

import warnings

import pytest

from torchtriage.answer.failure_facts import registry
from torchtriage.answer.failure_facts.failure import Failure
from torchtriage.domain.fact import Fact
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

_LOG = (
    b'Traceback (most recent call last):\n  File "/job/train.py", line 88, in main\n    report(model)\nKeyError: "a"\n'
)


def _defective(_: Failure) -> tuple[Fact, ...]:
    raise ZeroDivisionError("a defect")


def test_a_defect_in_one_fact_does_not_cost_the_answer(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "KINDS", (_defective, *registry.KINDS))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        verdict = engine.triage(from_bytes(_LOG))
    assert verdict.answer is not None
    assert "/job/train.py:88" in verdict.answer.says
    assert {str(warning.message) for warning in warned} == {
        "no facts of the kind _defective: ZeroDivisionError('a defect')"
    }
