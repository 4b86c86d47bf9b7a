"""Probabilities of counts by chance alone. All tests are one-sided: the probability of at least this count."""

from __future__ import annotations

from math import exp, lgamma, log, log1p


def chance_probability(seen: int, drawn: int, marked: int, total: int) -> float:
    """Returns the probability that at least `seen` of `drawn` items are marked, if `marked` of `total` items are and
    each is equally likely to be drawn (Fisher's exact test)."""
    first, last = max(seen, drawn + marked - total, 0), min(drawn, marked)
    whole = _choose(total, drawn)
    terms = (exp(_choose(marked, at) + _choose(total - marked, drawn - at) - whole) for at in range(first, last + 1))
    return min(1.0, sum(terms)) if seen > 0 else 1.0


def hit_by_chance(seen: int, tries: int, share: float) -> float:
    """Returns the probability of at least `seen` hits in `tries`, if each try hits with probability `share` (binomial
    test)."""
    if seen <= 0 or share >= 1:
        return 1.0
    if share <= 0:
        return 0.0
    hit, missed = log(share), log1p(-share)
    terms = (exp(_choose(tries, at) + at * hit + (tries - at) * missed) for at in range(seen, tries + 1))
    return min(1.0, sum(terms))


def _choose(total: int, taken: int) -> float:
    """Returns the logarithm of the binomial coefficient."""
    return lgamma(total + 1) - lgamma(taken + 1) - lgamma(total - taken + 1)
