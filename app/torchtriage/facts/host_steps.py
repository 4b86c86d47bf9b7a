"""Collects the time at which each host logged each step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from torchtriage.domain.host import host_name
from torchtriage.domain.line import Line
from torchtriage.facts import progress

_OF_EACH = 64  # first lines kept of one rank or host in one file
_MAX_COUNT = 4096  # lines kept of a run
_GIVE_UP_AFTER = 16  # if none of so many lines is kept, the rest of the file adds nothing


StepKey = tuple[int, str | None, int | None]  # (attempt, epoch, step)
StepTimes = dict[StepKey, str]
_Writer = tuple[int, str | None, int | None]  # (file, host, rank)


@dataclass(slots=True)
class HostSteps:
    """Call `add` with progress lines, one file at a time. Keeps the first lines that have a time."""

    lines: list[Line] = field(default_factory=list)
    _kept: dict[_Writer, int] = field(default_factory=dict)
    _read: int = -1  # the file of which no more lines are read

    def add(self, lines: Sequence[Line]) -> None:
        """Adds progress lines of one file."""
        file = lines[0].position.file
        if file == self._read or len(self.lines) >= _MAX_COUNT:
            return
        before = len(self.lines)
        for line in lines:
            if line.time is not None:
                writer = file, line.host, line.rank
                kept = self._kept.get(writer, 0)
                if kept < _OF_EACH:
                    self._kept[writer] = kept + 1
                    self.lines.append(line)
        if len(lines) >= _GIVE_UP_AFTER and len(self.lines) == before:
            self._read = file

    def times(self, host_of: Mapping[int, str]) -> dict[str, StepTimes]:
        """Returns, for each host, the time at which it first logged each step. Empty unless several hosts did.
        `host_of` maps ranks to hosts."""
        if not host_of and not any(line.host for line in self.lines):
            return {}  # true for most logs, which name no host
        by_host: dict[str, dict[_Writer, list[Line]]] = {}
        for line in self.lines:
            host = host_of_line(line, host_of)
            if host is not None and host != "localhost":
                writer = line.position.file, host, _rank(line)
                by_host.setdefault(host, {}).setdefault(writer, []).append(line)
        if len(by_host) < 2:
            return {}
        # One rank represents its host: the one with the most lines.
        return {host: _times(max(writers.values(), key=len)) for host, writers in by_host.items()}


def _times(lines: Sequence[Line]) -> StepTimes:
    """Returns the time at which each step was first logged."""
    found: StepTimes = {}
    for line in lines:
        text = progress.newest(line.text)
        epoch, step = progress.epoch(text), progress.step(text)
        if line.time is not None and (epoch is not None or step is not None):
            key = line.attempt, epoch, step
            found[key] = min(line.time, found.get(key, line.time))
    return found


def _rank(line: Line) -> int | None:
    return line.rank if line.rank is not None else progress.writer(line.text)


def host_of_line(line: Line, host_of: Mapping[int, str]) -> str | None:
    """Returns the host whose clock gave the time of a line, or None if unknown. `host_of` maps ranks to hosts."""
    if line.host is not None:
        return host_name(line.host)
    rank = _rank(line)
    return host_of.get(rank) if rank is not None else None


def spans(lines: Iterable[Line], host_of: Mapping[int, str]) -> dict[str, tuple[str, str]]:
    """Returns the first and last time of these lines on each host."""
    found: dict[str, tuple[str, str]] = {}
    for line in lines:
        host = host_of_line(line, host_of)
        if host is not None and line.time is not None:
            first, last = found.get(host, (line.time, line.time))
            found[host] = min(first, line.time), max(last, line.time)
    return found
