"""Records the phases of a run, and its steps, from progress lines."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from operator import itemgetter

from torchtriage.domain.line import START, Line, Position
from torchtriage.facts import progress
from torchtriage.facts.line_facts import MAX_LENGTH

MAX_PHASES = 20_000  # changes of phase that are kept of a run


@dataclass(slots=True)
class Phases:
    """The phases of the run, by the position of the line that shows each first."""

    _entered: list[tuple[Position, str]] = field(default_factory=list)
    # start and end of the last phase in its file, if it is training
    _trains: tuple[Position, Position] = (START, START)

    def at(self, position: Position) -> str | None:
        """Returns the last phase that the same file showed up to the line at `position`."""
        place = bisect_right(self._entered, (position, "~")) - 1
        same = place >= 0 and self._entered[place][0].file == position.file
        return self._entered[place][1] if same else None

    def last_of(self, files: Collection[int]) -> str | None:
        """Returns the last phase that any of these files showed."""
        return next((name for at, name in reversed(self._entered) if at.file in files), None)

    def enter(self, position: Position, phase: str) -> None:
        """Records that a new phase starts at `position`."""
        same = self._entered and self._entered[-1][1] == phase and self.at(position) is not None
        if not same and len(self._entered) < MAX_PHASES:
            self._entered.append((position, phase))
            self._trains = (position, position.file_end) if phase == "train" else (START, START)

    def enter_training(self, line: Line) -> bool:
        """Records that the run is training, if a progress line shows it. Returns whether that was already known. Then
        it is also known for the lines below it in this file."""
        position = line.position
        if self._trains[0] <= position < self._trains[1]:
            return True
        if self.at(position) not in ("train", "evaluate") or progress.step(line.text[:MAX_LENGTH]) is not None:
            self.enter(position, "train")
        return False

    def moved(self, to: Callable[[Position], Position]) -> Phases:
        """Returns the phases with file numbers changed to the order of the run."""
        return Phases(sorted((to(position), phase) for position, phase in self._entered))


@dataclass(slots=True)
class Steps:
    """The last step of each file. Reading the step of every line would take as long as all other facts."""

    _last: dict[int, tuple[int, int]] = field(default_factory=dict)  # file → (place in the file, step)
    _unread: list[Line] = field(default_factory=list)

    def add(self, lines: Iterable[Line]) -> None:
        """Adds progress lines."""
        self._unread += lines

    def read(self) -> int | None:
        """Returns the last step of the file with the most progress."""
        known: int | None = None  # the file whose last step is known
        for line in reversed(self._unread):
            if known == self._unread[0].position.file:
                break  # true for most batches, whose lines are from one file
            file = line.position.file
            if file != known and (step := progress.step(progress.newest(line.text))) is not None:
                newest = line.position.line, step
                self._last[file] = max(
                    newest, self._last.get(file, newest), key=itemgetter(0)
                )  # a sample may arrive late
                known = file
        self._unread.clear()
        return max((step for _, step in self._last.values()), default=None)
