"""When hosts logged which step: lines of progress in, the time of each step on each host out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from torchtriage.domain.host import host_name
from torchtriage.domain.line import Line
from torchtriage.facts import progress

_OF_EACH = 64  # first lines kept of one host or rank in one file
_MOST = 4096  # lines kept of a run
_FEW = 16  # lines; so many of which none is kept show that a file tells nothing more

_NO_HOST = (None, "localhost")

Step = tuple[int, str | None, int | None]  # attempt, epoch, step
StepTimes = dict[Step, str]


@dataclass(slots=True)
class HostSteps:
    """Feed it lines of progress, those of one file together; it keeps the first ones with a time."""

    lines: list[Line] = field(default_factory=list)
    _kept: dict[tuple[int, str | int | None], int] = field(default_factory=dict)
    _read: int = -1  # the file of which no more lines are looked at

    def add(self, lines: Sequence[Line]) -> None:
        """Takes lines of progress of one file."""
        file = lines[0].position.file
        if file == self._read or len(self.lines) >= _MOST:
            return
        before = len(self.lines)
        for line in lines:
            if line.time is not None:
                writer = file, line.rank if line.host is None else line.host
                kept = self._kept.get(writer, 0)
                if kept < _OF_EACH:
                    self._kept[writer] = kept + 1
                    self.lines.append(line)
        if len(lines) >= _FEW and len(self.lines) == before:
            self._read = file

    def times(self, host_of: Mapping[int, str]) -> dict[str, StepTimes]:
        """-> the time at which each host logged each step first, where several hosts did. `host_of`: of a rank."""
        placed = [(host, line) for line in self.lines if (host := host_of_line(line, host_of)) not in _NO_HOST]
        if len({host for host, _ in placed}) < 2:
            return {}
        found: dict[str, StepTimes] = {}
        for host, line in placed:
            text = progress.newest(line.text)
            epoch, step = progress.epoch(text), progress.step(text)
            if line.time is None or (epoch is None and step is None):
                continue
            times, key = found.setdefault(host, {}), (line.attempt, epoch, step)
            times[key] = min(line.time, times.get(key, line.time))
        return found


def host_of_line(line: Line, host_of: Mapping[int, str]) -> str | None:
    """-> the host whose clock dated a line of the program, where that is known. `host_of`: of a rank."""
    if line.host is not None:
        return host_name(line.host)
    rank = line.rank if line.rank is not None else progress.writer(line.text)
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
