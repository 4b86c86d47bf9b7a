from __future__ import annotations

import pytest

from bench.engine_cost import BUDGETS, KINDS, executed_lines, lines_of, problem
from tests.built_in import built_in_engine


@pytest.mark.parametrize("kind", KINDS)
def test_a_log_takes_no_more_lines_of_python_than_its_budget(kind: str) -> None:
    assert problem(kind, lines_of(built_in_engine(), kind), BUDGETS[kind][0]) is None


def test_each_turn_of_a_loop_is_counted() -> None:
    def work(turns: int) -> None:
        for _ in range(turns):
            pass

    assert executed_lines(lambda: work(1010)) - executed_lines(lambda: work(10)) == 2 * 1000


@pytest.mark.parametrize(
    ("measured", "expected"), [(130, "above"), (124, None), (100, None), (71, None), (60, "lower")]
)
def test_a_figure_that_left_its_budget_is_reported(measured: float, expected: str | None) -> None:
    found = problem("lines", measured, 100)
    assert found is None if expected is None else found is not None and expected in found
