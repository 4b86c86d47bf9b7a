"""Who and where a group of incidents hits: the share of a value inside the group beside its share of all runs."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_RUNS = 5  # of a group, below which nothing is said to stand out
LEAST_SEEN = 3  # runs with a value, below which it is not said to stand out
MOST_CHANCE = 0.01  # after every value that was looked at has been allowed for


@dataclass(frozen=True, slots=True)
class Share:
    """A value that `inside` of `known` runs of the group have, and `everywhere` of `all_known` runs of all; runs that
    do not tell are in none of these. `chance` is the probability of so many or more, were the group any runs of all:
    Fisher's exact test, times how many values were compared."""

    value: str
    inside: int
    known: int
    everywhere: int
    all_known: int
    chance: float

    @property
    def stands_out(self) -> bool:
        enough = self.known >= LEAST_RUNS and self.inside >= LEAST_SEEN
        return enough and self.chance <= MOST_CHANCE

    @property
    def share(self) -> float:
        return self.inside / self.known

    @property
    def share_of_all(self) -> float:
        return self.everywhere / self.all_known


@dataclass(frozen=True, slots=True)
class Composition:
    """`runs` of the group, its latest, beside `all_runs` of the same time, which hold them. `parts` are the values by
    property (host, user, …), those that stand out first; `more` how many values are left out of each, `values` all that
    the group has."""

    runs: int
    all_runs: int
    parts: dict[str, tuple[Share, ...]]
    more: dict[str, int]
    values: dict[str, tuple[str, ...]]

    @property
    def enough(self) -> bool:
        return self.runs >= LEAST_RUNS

    @property
    def standing_out(self) -> list[tuple[str, Share]]:
        """What is more common here than chance allows, the least likely first."""
        found = [(name, share) for name, shares in self.parts.items() for share in shares if share.stands_out]
        return sorted(found, key=lambda one: one[1].chance)


@dataclass(frozen=True, slots=True)
class LaterAttempt:
    """What the next attempt of an incident's job came to: healthy, same (it failed in the same group), other, or
    unknown; `next` is its incident, None where none was heard of."""

    incident: str
    came: str
    next: str | None
