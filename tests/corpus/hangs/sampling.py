"""Which hangs are made: a seed in, draws out, each with its label. A label is made by construction, before any engine
reads what the run leaves."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

ALONE = ("killed", "stopped", "slow-loader", "lock", "gil", "worker", "slow-save", "uneven", "evaluates")
"""Kinds in which the ranks at fault are in no collective."""
APART = (
    "skip", "order", "shape", "dtype", "other-group", "extra", "swallowed", "evaluates-together", "uneven-waits", "barrier",
)  # fmt: skip
"""Kinds in which they are in another collective than the others."""
KINDS = (*ALONE, *APART)
WORLDS = (2, 3, 4, 4, 5, 6, 8, 8, 12, 16)
LAYOUTS = ("flat", "pairs", "grid")
_RAISE = ("killed", "shape", "dtype")  # Gloo raises on the other ranks, so their stacks show no collective
_ABORT = ("killed", "shape", "dtype", "skip", "order", "extra", "swallowed", "evaluates-together")
"""Kinds in which Gloo can abort a process, whose end torchrun would answer by ending the others."""
_MAX_RANKS = 4  # ranks that start torch on their own, or that py-spy looks at: both take seconds each


@dataclass(frozen=True)
class Draw:
    """One hang. `evidence` says what is gathered."""

    name: str
    kind: str
    ranks: int
    layout: str
    launcher: str
    evidence: str
    at_fault: tuple[int, ...]
    step: int
    asynchronous: bool
    json: bool  # the form of the dumps

    def told(self, dead: Sequence[int]) -> bool:
        """-> whether what is gathered can name the ranks at fault. `dead`: the ranks that ended. Where ranks disagree,
        Gloo aborts those that receive too much, which need not be the ones at fault: of several that leave nothing none
        can be told from the other, and of those that are left most must have done right."""
        if self.kind in ALONE:
            return not (self.asynchronous and self.evidence == "faulthandler alone")
        if self.evidence == "faulthandler alone":
            return False
        shown = set(self.at_fault) - set(dead)
        if not shown:
            return set(dead) == set(self.at_fault) and 2 * len(set(dead)) < self.ranks
        return 2 * len(shown) < self.ranks - len(set(dead))


def draws(count: int, seed: int) -> list[Draw]:
    """-> the hangs of a seed; each kind comes before any comes again."""
    chance = random.Random(seed)
    found: list[Draw] = []
    while len(found) < count:
        for kind in chance.sample(KINDS, len(KINDS)):
            found.append(_draw(f"{len(found):03}-{kind}", kind, chance))
    return found[:count]


def _draw(name: str, kind: str, chance: random.Random) -> Draw:
    ranks = chance.choice(WORLDS)
    layout = chance.choice([one for one in LAYOUTS if one != "grid" or (ranks % 2 == 0 and ranks > 2)])
    if kind == "other-group" and layout == "flat":
        layout = "pairs"
    bad = chance.sample(range(ranks), 2 if ranks >= 6 and chance.random() < 0.2 else 1)
    if kind == "other-group" and layout == "pairs" and ranks % 2:
        bad = [rank for rank in bad if rank < ranks - 1] or [0]  # the last one has no pair
    launcher = "fork"
    if ranks <= _MAX_RANKS and chance.random() < 0.25:
        launcher = "processes" if kind in _ABORT else "torchrun"
    stacks = ["dumps and faulthandler"] + (["dumps and py-spy"] if ranks <= _MAX_RANKS else [])
    evidence = ["dumps alone"] if kind in _RAISE else [*stacks, *stacks, "dumps alone"]
    if kind in ALONE and kind not in ("killed", "stopped", "gil"):
        evidence.append("faulthandler alone")
    return Draw(
        name, kind, ranks, layout, launcher, chance.choice(evidence), tuple(sorted(bad)), chance.randrange(1, 6),
        chance.random() < 0.3, chance.random() < 0.3,
    )  # fmt: skip
