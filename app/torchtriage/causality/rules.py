"""A rule by which a root cause is chosen: a name, a predicate, and the sentence that explains its decision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, ParamSpec

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Rule(Generic[P]):
    """`holds` returns whether the rule applies. If it does, `sets_aside` says the result: True means that the finding
    is not a cause, False means that it may be one. The first rule of a list that applies decides, so the order of a
    list matters."""

    name: str
    holds: Callable[P, bool]
    reason: str
    reason_zh: str
    sets_aside: bool = True


def first_applying(rules: Sequence[Rule[P]], *args: P.args, **kwargs: P.kwargs) -> Rule[P] | None:
    """Returns the first rule that applies, or None."""
    for rule in rules:  # A generator would take twice as long, and there are many findings.
        if rule.holds(*args, **kwargs):
            return rule
    return None
