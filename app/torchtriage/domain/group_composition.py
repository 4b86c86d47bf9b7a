"""Which users, hosts and other values a group of incidents affects more than usual: the share of a value in the group
next to its share of all runs."""

from __future__ import annotations

from dataclasses import dataclass

MIN_RUNS = 5  # runs of a group; in a smaller group, nothing stands out
MIN_SEEN = 3  # runs with a value; with fewer, it does not stand out
MAX_CHANCE = 0.01  # after correction for the number of values that were tested


@dataclass(frozen=True, slots=True)
class Share:
    """A value that `inside` of `known` runs of the group have, and `everywhere` of `all_known` runs in total. Runs
    without a known value are not counted. `chance` is the probability of at least as many if the group were a random
    choice of all runs: Fisher's exact test, times the number of values compared."""

    value: str
    inside: int
    known: int
    everywhere: int
    all_known: int
    chance: float

    @property
    def stands_out(self) -> bool:
        enough = self.known >= MIN_RUNS and self.inside >= MIN_SEEN
        return enough and self.chance <= MAX_CHANCE

    @property
    def share(self) -> float:
        return self.inside / self.known

    @property
    def share_of_all(self) -> float:
        return self.everywhere / self.all_known


@dataclass(frozen=True, slots=True)
class Composition:
    """The latest `runs` of the group, next to `all_runs` of the same time, which include them. `parts` are the values
    by property (host, user, …), those that stand out first. `more` is how many values of each property are left out;
    `values` are all values in the group."""

    runs: int
    all_runs: int
    parts: dict[str, tuple[Share, ...]]
    more: dict[str, int]
    values: dict[str, tuple[str, ...]]

    @property
    def enough(self) -> bool:
        return self.runs >= MIN_RUNS

    @property
    def standing_out(self) -> list[tuple[str, Share]]:
        """The values that are more common here than chance allows, the least likely first."""
        found = [(name, share) for name, shares in self.parts.items() for share in shares if share.stands_out]
        return sorted(found, key=lambda one: one[1].chance)


@dataclass(frozen=True, slots=True)
class LaterAttempt:
    """How the next attempt of an incident's job ended: healthy, same (it failed in the same group), other, or unknown.
    `next` is its incident, or None if none was received."""

    incident: str
    came: str
    next: str | None
