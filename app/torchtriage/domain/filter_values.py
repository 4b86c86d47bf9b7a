"""What a filter of the list of incidents can be set to, from what is stored."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FilterValues:
    """For each filter its values and how many of the latest `looked_at` incidents that fit all other filters have them,
    the most often first."""

    looked_at: int
    counts: dict[str, dict[str, int]]
