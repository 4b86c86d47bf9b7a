"""A set of ranks, which is shown to people and in JSON as ranges: `0-169,171-511`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RankSet:
    """Ranks as sorted ranges, each with its first and last rank. A run can have thousands of ranks."""

    ranges: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, ranks: Iterable[int]) -> RankSet:
        """Returns the set of these ranks: {0, 1, 2, 5} becomes `0-2,5`."""
        found: list[tuple[int, int]] = []
        for rank in sorted(set(ranks)):
            if found and rank == found[-1][1] + 1:
                found[-1] = (found[-1][0], rank)
            else:
                found.append((rank, rank))
        return cls(tuple(found))

    @classmethod
    def from_json(cls, text: str) -> RankSet:
        """Returns the set for a text that `str` made. Raises ValueError."""
        if type(text) is not str:
            raise ValueError("is not a text of ranges")
        parts = [part.partition("-") for part in text.split(",") if part]
        return cls(tuple((int(first), int(last) if dash else int(first)) for first, dash, last in parts))

    def to_json(self) -> str:
        return str(self)

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, schema_of: Callable[[Any], Any]) -> Any:
        """Returns the schema for the OpenAPI document."""
        return schema_of(str)

    def __str__(self) -> str:
        return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in self.ranges)

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.ranges)

    def __iter__(self) -> Iterator[int]:
        return (rank for first, last in self.ranges for rank in range(first, last + 1))

    def __or__(self, other: Iterable[int]) -> RankSet:
        return RankSet.of((*self, *other))
