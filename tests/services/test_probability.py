"""Counts by chance, beside sums that are worked out another way."""

from __future__ import annotations

from itertools import combinations, product
from math import isclose

import pytest

from torchtriage.services.probability import chance_probability, hit_by_chance


@pytest.mark.parametrize("seen", range(5))
def test_drawn_by_chance_equals_the_enumeration(seen: int) -> None:
    draws = list(combinations(range(9), 4))
    as_many = sum(sum(one < 3 for one in draw) >= seen for draw in draws)  # three of nine are marked
    assert isclose(chance_probability(seen, 4, 3, 9), as_many / len(draws), abs_tol=1e-12)


@pytest.mark.parametrize("seen", range(6))
def test_hit_by_chance_equals_the_enumeration(seen: int) -> None:
    tries = list(product((0, 1, 2, 3), repeat=5))
    as_many = sum(one.count(0) >= seen for one in tries)
    assert isclose(hit_by_chance(seen, 5, 0.25), as_many / len(tries), abs_tol=1e-12)


def test_large_counts_give_finite_probabilities() -> None:
    assert 0 <= chance_probability(900, 1000, 1000, 2_000_000) < 1e-300
    assert chance_probability(1, 2000, 2000, 4000) == pytest.approx(1)
    assert hit_by_chance(90_000, 100_000, 0.9) == pytest.approx(0.5, abs=0.01)
    assert (hit_by_chance(0, 5, 0.1), hit_by_chance(1, 5, 0.0), hit_by_chance(3, 5, 1.0)) == (1.0, 0.0, 1.0)
