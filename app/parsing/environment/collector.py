"""Collects the facts of a run: every kept line in, launcher, world size, hosts, versions, progress and phases out."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import lru_cache

import re2

from app.domain.line import Line
from app.parsing.environment import launchers, progress, versions
from app.parsing.environment.kinship import FIELD, FOREIGN, begins
from app.parsing.environment.signs import Shown
from app.parsing.environment.versions import Bounds
from app.reading.lines import FILE_SPAN

MOST_HOSTS = 4096
MOST_PHASES = 20_000  # changes of phase that are kept of a run
_NCCL_HOST = re.compile(r"^([\w.-]+):\d+:\d+ \[\d+\] NCCL ")
_SIGNS = [*launchers.SIGNS, *versions.SIGNS, *progress.SIGNS, FOREIGN, FIELD]


def _all_at_once() -> re2.Set:
    signs = re2.Set.SearchSet()
    for sign in _SIGNS:
        # It only points: RE2 knows no look-around, and long repeats would need much memory.
        signs.Add(re.sub(r"\(\?<?[!=][^)]*\)", "", re.sub(r"\{0,\d+\}", "*", sign.pattern)))
    signs.Compile()
    return signs


_QUICK = _all_at_once()


@dataclass(frozen=True, slots=True)
class _Told:
    """What one line's text tells, wherever it stands. Ranks print the same lines, so this is kept per text."""

    launcher: str | None = None
    world_size: int | None = None
    exit_code: int | None = None
    versions: tuple[tuple[str, str], ...] = ()
    bounds: Bounds = (None, None)
    phase: str | None = None
    progress: bool = False
    step: int | None = None
    writer: int | None = None
    well: bool = False
    wound_up: bool = False
    foreign: bool = False
    of_field: bool = False
    host: str | None = None


_NOTHING = _Told()


@dataclass(slots=True)
class Environment:
    """Feed it every kept line, and `sample` now and then; it collects facts and never claims a line.

    `progress` and `well` hold the orders of lines that show progress, and that say the run ended well; `wound_up`
    those of lines that clean-up code prints after a failure as well; `progress_of` the last progress of each rank that
    labels its lines. `step` is the last one of the file that came
    furthest. `exit_code` is the last status but 0 that a line speaks of.
    """

    launcher: str | None = None
    world_size: int | None = None
    exit_code: int | None = None
    hosts: dict[str, None] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    started: str | None = None
    ended: str | None = None
    progress: list[int] = field(default_factory=list)
    progress_of: dict[int, int] = field(default_factory=dict)
    well: list[int] = field(default_factory=list)
    wound_up: list[int] = field(default_factory=list)
    foreign: int = 0
    of_field: int = 0
    _steps: dict[int, int] = field(default_factory=dict)  # by file
    _phases: list[tuple[int, str]] = field(default_factory=list)
    _bounds: Bounds = (None, None)

    @property
    def step(self) -> int | None:
        return max(self._steps.values(), default=None)

    @property
    def torch_range(self) -> str | None:
        """The torch versions that the log's forms leave open, as `>=2.3,<2.5`."""
        by_python = versions.bounds_by_python(self.versions.get("python"))
        return versions.told(versions.narrowed([self._bounds, by_python])) or versions.told(self._bounds)

    def phase_at(self, order: int) -> str | None:
        """-> what the same file showed last that the run did, up to the line at `order`."""
        place = bisect_right(self._phases, (order, "~")) - 1
        same = place >= 0 and self._phases[place][0] // FILE_SPAN == order // FILE_SPAN
        return self._phases[place][1] if same else None

    def feed(self, line: Line, claimed: bool) -> None:
        """`claimed`: the line belongs to a traceback or a report, where `step = 5` is code and no progress."""
        told = _told(line.text[:2000])
        if line.time is not None:
            self._timed(line.time)
        host = line.host or told.host
        if host and host not in self.hosts and len(self.hosts) < MOST_HOSTS:
            self.hosts[host] = None
        if told is not _NOTHING:
            self._note(line.order, told, claimed)
            rank = line.rank if line.rank is not None else told.writer
            if rank is not None and told.progress and not claimed:
                self.progress_of[rank] = line.order
        raw = line.raw
        if raw != line.text and raw.lstrip()[:1] == "[":  # The rank's label tells the version too.
            self._narrow(_labelled(raw[:80]))

    def _note(self, order: int, told: _Told, claimed: bool) -> None:
        self.launcher = launchers.outer(self.launcher, told.launcher) if told.launcher else self.launcher
        self.world_size = self.world_size or told.world_size
        self.exit_code = told.exit_code or self.exit_code
        for name, version in told.versions:
            known = self.versions.setdefault(name, version)
            if version.startswith(f"{known}."):
                self.versions[name] = version
        self._narrow(told.bounds)
        if told.phase and not claimed:
            self._entered(order, told.phase)
        if told.progress and not claimed:
            self._progressed(order, told.step)
        if told.well:
            self.well.append(order)
        if told.wound_up:
            self.wound_up.append(order)
        self.foreign += told.foreign
        self.of_field += told.of_field

    def sample(self, order: int, text: str) -> None:
        """Looks for progress in a piece of the log that goes by unkept; `order` is that of its last line."""
        if progress.progressed(text, _shown(text)):
            self._progressed(order, progress.step(text))

    def move(self, shifts: dict[int, int]) -> None:
        """Moves whole files in the order of the run: number of the file -> lines by which it moves."""

        def moved(order: int) -> int:
            return order + shifts.get(order // FILE_SPAN, 0)

        for orders in (self.progress, self.well, self.wound_up):
            orders[:] = sorted(map(moved, orders))
        self.progress_of = {rank: moved(order) for rank, order in self.progress_of.items()}
        self._phases = sorted((moved(order), phase) for order, phase in self._phases)

    @staticmethod
    def begins_at(text: str) -> bool:
        """-> whether a launch begins with this line."""
        return begins(text)

    def _narrow(self, bounds: Bounds) -> None:
        if bounds != (None, None):
            self._bounds = versions.narrowed([self._bounds, bounds])

    def _timed(self, time: str) -> None:
        """Times without a year begin with `--`; beside one with a year, both count from the month on."""
        self.started, self.ended = self.started or time, self.ended or time
        if time[:2] == self.started[:2] and time < self.started:
            self.started = time
        if time > self.ended if time[:2] == self.ended[:2] else _in_year(time) > _in_year(self.ended):
            self.ended = time

    def _progressed(self, order: int, step: int | None) -> None:
        if not self.progress or self.progress[-1] != order:
            self.progress.append(order)
        if step is not None:
            self._steps[order // FILE_SPAN] = step
        began, phase = self._phases[-1] if self._phases else (-1, "")
        if phase == "train" and began <= order and began // FILE_SPAN == order // FILE_SPAN:
            return  # As most lines of most logs.
        if self.phase_at(order) not in ("train", "evaluate") or step is not None:
            self._entered(order, "train")

    def _entered(self, order: int, phase: str) -> None:
        if (not self._phases or self._phases[-1][1] != phase or self.phase_at(order) is None) and len(
            self._phases
        ) < MOST_PHASES:
            self._phases.append((order, phase))


def _shown(text: str) -> Shown:
    """-> of all signs those that a text shows, in one pass; that takes a tenth of the time of one search for each."""
    return _signs(tuple(_QUICK.Match(text.encode("utf-8", "replace")) or ()))


@lru_cache(maxsize=1024)
def _signs(indexes: tuple[int, ...]) -> Shown:
    return frozenset(_SIGNS[index] for index in indexes)


@lru_cache(maxsize=4096)
def _labelled(start: str) -> Bounds:
    return versions.bounds(_shown(start))


def _in_year(time: str) -> str:
    """-> `05-01T09:00:00` of `--05-01T09:00:00` as of `2026-05-01T09:00:00`."""
    return time[2:] if time.startswith("--") else time[5:]


@lru_cache(maxsize=4096)
def _told(text: str) -> _Told:
    shown = _shown(text)
    if not shown and " NCCL " not in text:
        return _NOTHING
    on = progress.progressed(text, shown)
    host = _NCCL_HOST.match(text) if " NCCL " in text else None
    return _Told(
        launcher=launchers.launcher(shown),
        world_size=launchers.world_size(text, shown),
        exit_code=launchers.exit_code(text, shown),
        versions=versions.printed(text, shown),
        bounds=versions.bounds(shown),
        phase=progress.phase(shown),
        progress=on,
        step=progress.step(text) if on else None,
        writer=progress.writer(text) if on else None,
        well=progress.WELL in shown,
        wound_up=progress.WOUND_UP in shown,
        foreign=FOREIGN in shown and bool(FOREIGN.regex.search(text)),
        of_field=FIELD in shown,
        host=host[1] if host else None,
    )
