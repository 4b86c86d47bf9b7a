"""The course of a run: what it did when, and how many steps it had done; lines of progress in, phases and steps out."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from torchtriage.domain.line import Line
from torchtriage.facts import progress
from torchtriage.facts.line_facts import LONGEST
from torchtriage.reading.lines import FILE_SPAN

MOST_PHASES = 20_000  # changes of phase that are kept of a run


@dataclass(slots=True)
class Phases:
    """What the run did, by the order of the line that shows it first."""

    _entered: list[tuple[int, str]] = field(default_factory=list)
    _trains: tuple[int, int] = (0, 0)  # of the last phase, if it is that: its order, and where its file ends

    def at(self, order: int) -> str | None:
        """-> what the same file showed last that the run did, up to the line at `order`."""
        place = bisect_right(self._entered, (order, "~")) - 1
        same = place >= 0 and self._entered[place][0] // FILE_SPAN == order // FILE_SPAN
        return self._entered[place][1] if same else None

    def last_of(self, files: Collection[int]) -> str | None:
        """-> what some files showed last."""
        return next((name for at, name in reversed(self._entered) if at // FILE_SPAN in files), None)

    def enter(self, order: int, phase: str) -> None:
        """Takes that the run does something else."""
        same = self._entered and self._entered[-1][1] == phase and self.at(order) is not None
        if not same and len(self._entered) < MOST_PHASES:
            self._entered.append((order, phase))
            self._trains = (order, (order // FILE_SPAN + 1) * FILE_SPAN) if phase == "train" else (0, 0)

    def go_on(self, line: Line) -> bool:
        """Takes that the run trains, if a line of progress shows it. -> whether that was known, as of most lines of most
        logs, and so it is of those below it in its file."""
        order = line.order
        if self._trains[0] <= order < self._trains[1]:
            return True
        if self.at(order) not in ("train", "evaluate") or progress.step(line.text[:LONGEST]) is not None:
            self.enter(order, "train")
        return False

    def move(self, moved: Callable[[int], int]) -> None:
        """Moves whole files in the order of the run."""
        self._entered = sorted((moved(order), phase) for order, phase in self._entered)


@dataclass(slots=True)
class Steps:
    """The last step of each file. That of every line would be as much work as all other facts."""

    _last: dict[int, int] = field(default_factory=dict)
    _unread: list[Line] = field(default_factory=list)

    def add(self, lines: Iterable[Line]) -> None:
        """Takes lines of progress."""
        self._unread += lines

    def read(self) -> int | None:
        """-> the last step of the file that came furthest."""
        begins = ends = 0  # of the file whose last step is known
        for line in reversed(self._unread):
            if begins <= self._unread[0].order < ends:
                break  # as of most batches, which are of one file
            if not begins <= line.order < ends and (step := progress.step(line.text[:LONGEST])) is not None:
                file = line.order // FILE_SPAN
                self._last[file] = step
                begins, ends = file * FILE_SPAN, (file + 1) * FILE_SPAN
        self._unread.clear()
        return max(self._last.values(), default=None)
