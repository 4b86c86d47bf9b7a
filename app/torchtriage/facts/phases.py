"""The phases of a run: what it did when, and after how many steps; lines of progress in, phases and steps out."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from operator import itemgetter

from torchtriage.domain.line import START, Line, Position
from torchtriage.facts import progress
from torchtriage.facts.line_facts import LONGEST

MOST_PHASES = 20_000  # changes of phase that are kept of a run


@dataclass(slots=True)
class Phases:
    """What the run did, by the position of the line that shows it first."""

    _entered: list[tuple[Position, str]] = field(default_factory=list)
    _trains: tuple[Position, Position] = (START, START)  # of the last phase, if it is that: where it and its file end

    def at(self, position: Position) -> str | None:
        """-> what the same file showed last that the run did, up to the line at `position`."""
        place = bisect_right(self._entered, (position, "~")) - 1
        same = place >= 0 and self._entered[place][0].file == position.file
        return self._entered[place][1] if same else None

    def last_of(self, files: Collection[int]) -> str | None:
        """-> what some files showed last."""
        return next((name for at, name in reversed(self._entered) if at.file in files), None)

    def enter(self, position: Position, phase: str) -> None:
        """Takes that the run does something else."""
        same = self._entered and self._entered[-1][1] == phase and self.at(position) is not None
        if not same and len(self._entered) < MOST_PHASES:
            self._entered.append((position, phase))
            self._trains = (position, position.file_end) if phase == "train" else (START, START)

    def go_on(self, line: Line) -> bool:
        """Takes that the run trains, if a line of progress shows it. -> whether that was known, as of most lines of most
        logs, and so it is of those below it in its file."""
        position = line.position
        if self._trains[0] <= position < self._trains[1]:
            return True
        if self.at(position) not in ("train", "evaluate") or progress.step(line.text[:LONGEST]) is not None:
            self.enter(position, "train")
        return False

    def moved(self, to: Callable[[Position], Position]) -> Phases:
        """-> the phases with whole files moved in the order of the run."""
        return Phases(sorted((to(position), phase) for position, phase in self._entered))


@dataclass(slots=True)
class Steps:
    """The last step of each file. That of every line would be as much work as all other facts."""

    _last: dict[int, tuple[int, int]] = field(default_factory=dict)  # where in the file, and the step
    _unread: list[Line] = field(default_factory=list)

    def add(self, lines: Iterable[Line]) -> None:
        """Takes lines of progress."""
        self._unread += lines

    def read(self) -> int | None:
        """-> the last step of the file that came furthest."""
        known: int | None = None  # the file whose last step is
        for line in reversed(self._unread):
            if known == self._unread[0].position.file:
                break  # as of most batches, which are of one file
            file = line.position.file
            if file != known and (step := progress.step(progress.newest(line.text))) is not None:
                told = line.position.line, step
                self._last[file] = max(told, self._last.get(file, told), key=itemgetter(0))  # A sample may come late.
                known = file
        self._unread.clear()
        return max((step for _, step in self._last.values()), default=None)
