"""Progress lines sampled over the whole run, for its curve: all of them in, few kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from torchtriage.domain.line import Line, Position

_AT_ONCE = 16  # lines kept of those that are taken together
MOST = 1024  # lines kept of a run


@dataclass(slots=True)
class SpreadLines:
    """The longer the run, the further apart are the lines that stay."""

    lines: list[Line] = field(default_factory=list)

    def add(self, lines: Sequence[Line]) -> None:
        """Takes lines of progress."""
        self.lines += lines[:: -(-len(lines) // _AT_ONCE) or 1]
        if len(self.lines) > MOST:
            self.lines = self.lines[::2]

    def moved(self, to: Callable[[Position], Position]) -> SpreadLines:
        """-> the lines with whole files moved in the order of the run."""
        return SpreadLines([line._replace(position=to(line.position)) for line in self.lines])
