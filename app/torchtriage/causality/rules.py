"""A rule by which a root cause is chosen: a name, a predicate, and the sentence that says why it decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, ParamSpec

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Rule(Generic[P]):
    """`holds` says whether the rule decides; `sets_aside` what it then decides: that a finding is no cause, or that it
    stays. The first rule of a list that holds decides; so the order of a list matters."""

    name: str
    holds: Callable[P, bool]
    reason: str
    reason_zh: str
    sets_aside: bool = True


def deciding(rules: Sequence[Rule[P]], *args: P.args, **kwargs: P.kwargs) -> Rule[P] | None:
    """-> the first rule that holds."""
    for rule in rules:  # A generator would take twice as long, and findings are many.
        if rule.holds(*args, **kwargs):
            return rule
    return None
