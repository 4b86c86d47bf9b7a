"""A fact that a log states about its run: a name, a value, and the line that says it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    """`name` is a slot of cases' sentences too. `unit` is written as in `GiB`, `s`; None for words and plain counts.

    `line` counts from 1 in `file` (None where the run is one file); None for what is worked out of several lines.
    `rank` and `attempt` are told where others may say otherwise.
    """

    name: str
    value: str | int | float
    unit: str | None = None
    line: int | None = None
    file: str | None = None
    rank: int | None = None
    attempt: int | None = None

    @property
    def text(self) -> str:
        """The value with its unit, as a sentence says it; where the name ends in its unit, the sentence says that."""
        value = f"{self.value:g}" if isinstance(self.value, float) else str(self.value)
        said = (
            self.unit is None or self.name.endswith((f"_{self.unit}", f"_{self.unit}_limit")) or self.name == self.unit
        )
        return value if said else f"{value}{'' if self.unit == '%' else ' '}{self.unit}"
