"""A fact that a log states about its run: a name, a value, and the line that contains it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    """A fact about the run. `name` is also a slot of sentences in cases. `unit` is for example `GiB` or `s`, and None
    for words and plain counts.

    `line` counts from 1 in `file` (None if the run is one file). It is None if the value was computed from several
    lines. `rank` and `attempt` are set if other ranks or attempts may have another value.
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
        """The value with its unit for use in a sentence. If the name ends in the unit, it is left out."""
        value = f"{self.value:g}" if isinstance(self.value, float) else str(self.value)
        said = (
            self.unit is None or self.name.endswith((f"_{self.unit}", f"_{self.unit}_limit")) or self.name == self.unit
        )
        return value if said else f"{value}{'' if self.unit == '%' else ' '}{self.unit}"
