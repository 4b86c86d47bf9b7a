"""When hosts logged which step: lines of progress in, the time of each step on each host out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from torchtriage.domain.host import host_name
from torchtriage.domain.line import Line
from torchtriage.facts import progress

_OF_EACH = 64  # first lines kept of one rank or host in one file
_MOST = 4096  # lines kept of a run
_FEW = 16  # lines; so many of which none is kept show that a file tells nothing more


Step = tuple[int, str | None, int | None]  # attempt, epoch, step
StepTimes = dict[Step, str]
_Writer = tuple[int, str | None, int | None]  # file, host, rank


@dataclass(slots=True)
class HostSteps:
    """Feed it lines of progress, those of one file together; it keeps the first ones with a time."""

    lines: list[Line] = field(default_factory=list)
    _kept: dict[_Writer, int] = field(default_factory=dict)
    _read: int = -1  # the file of which no more lines are looked at

    def add(self, lines: Sequence[Line]) -> None:
        """Takes lines of progress of one file."""
        file = lines[0].position.file
        if file == self._read or len(self.lines) >= _MOST:
            return
        before = len(self.lines)
        for line in lines:
            if line.time is not None:
                writer = file, line.host, line.rank
                kept = self._kept.get(writer, 0)
                if kept < _OF_EACH:
                    self._kept[writer] = kept + 1
                    self.lines.append(line)
        if len(lines) >= _FEW and len(self.lines) == before:
            self._read = file

    def times(self, host_of: Mapping[int, str]) -> dict[str, StepTimes]:
        """-> the time at which each host logged each step first, where several hosts did. `host_of`: of a rank."""
        if not host_of and not any(line.host for line in self.lines):
            return {}  # as of most logs, which name no host
        by_host: dict[str, dict[_Writer, list[Line]]] = {}
        for line in self.lines:
            host = host_of_line(line, host_of)
            if host is not None and host != "localhost":
                writer = line.position.file, host, _rank(line)
                by_host.setdefault(host, {}).setdefault(writer, []).append(line)
        if len(by_host) < 2:
            return {}
        # One rank speaks for its host: the one that logged the most.
        return {host: _times(max(writers.values(), key=len)) for host, writers in by_host.items()}


def _times(lines: Sequence[Line]) -> StepTimes:
    """-> when each step was logged first."""
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
    """-> the host whose clock dated a line of the program, where that is known. `host_of`: of a rank."""
    if line.host is not None:
        return host_name(line.host)
    rank = _rank(line)
    return host_of.get(rank) if rank is not None else None


def spans(lines: Iterable[Line], host_of: Mapping[int, str]) -> dict[str, tuple[str, str]]:
    """-> the first and the last time of these lines on each host."""
    found: dict[str, tuple[str, str]] = {}
    for line in lines:
        host = host_of_line(line, host_of)
        if host is not None and line.time is not None:
            first, last = found.get(host, (line.time, line.time))
            found[host] = min(first, line.time), max(last, line.time)
    return found
