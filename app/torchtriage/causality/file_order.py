"""Brings the findings of a run's files into one order: the file in which something failed first comes first."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from torchtriage.causality.findings import Finding
from torchtriage.causality.run_reading import RunReading
from torchtriage.domain.event import Event, Where
from torchtriage.domain.line import Line, Position
from torchtriage.matching.matcher import EventPatterns

_MOST_TIMES = 100_000  # kept of a run


@dataclass(slots=True)
class Clock:
    """What time it was where, by the lines that tell it. Feed it the kept lines in order, many of one file at once."""

    _positions: list[Position] = field(default_factory=list)
    _times: list[str] = field(default_factory=list)

    def feed(self, lines: list[Line]) -> None:
        if len(self._times) >= _MOST_TIMES:
            return
        for line in lines:
            if line.time and (not self._times or self._times[-1] != line.time):
                self._positions.append(line.position)
                self._times.append(line.time)

    def at(self, position: Position) -> str | None:
        """-> the time of the last line up to `position` that tells one, of the same file."""
        place = bisect_right(self._positions, position) - 1
        same = place >= 0 and self._positions[place].file == position.file
        return self._times[place] if same else None

    def tell(self, findings: Iterable[Finding]) -> None:
        """Gives findings that tell no time of their own those of the lines around."""
        for finding in findings:
            if finding.event.time is None:
                place = bisect_right(self._positions, finding.position)
                below = place < len(self._positions) and self._positions[place].file == finding.position.file
                finding.around = self.at(finding.position), self._times[place] if below else None

    @property
    def year(self) -> int:
        """The year of the first time that has one."""
        return next((int(time[:4]) for time in self._times if time[:4].isdecimal()), 2000)


def merge(reading: RunReading, clock: Clock) -> None:
    """Moves whole files, so that those with failures stand in the order of their first one. Without times that can be
    compared they stay in the order of their names."""
    failed: dict[int, list[datetime | None]] = {}
    for finding in reading.findings:
        if finding.event.where is not Where.LINE:
            for event in (finding.event, *finding.samples):
                failed.setdefault(event.line.position.file, []).append(_moment(event, clock))
    told = {file: known for file, times in failed.items() if (known := [time for time in times if time])}
    if len(told) < len(failed) or len({time.tzinfo is None for times in told.values() for time in times}) > 1:
        return
    first = {file: min(times) for file, times in told.items()}
    files = sorted(first)
    moved = dict(zip(sorted(files, key=lambda file: first[file]), files, strict=True))
    moved = {file: to for file, to in moved.items() if to != file}
    if moved:
        for finding in reading.findings:
            _move(finding, moved)
        reading.environment.move(moved)


def _moment(event: Event, clock: Clock) -> datetime | None:
    told = clock.at(event.line.position) or event.time  # The lines' clock is one for all; a report has its own.
    if told is None:
        return None
    try:
        time = datetime.fromisoformat(f"{clock.year}{told[1:]}" if told.startswith("--") else told)
        return time if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _move(finding: Finding, files: dict[int, int]) -> None:
    events = [_moved(event, files) for event in (finding.event, *finding.samples)]
    events.sort(key=lambda event: event.line.position)
    first, *finding.samples = events
    chain = first.chain
    finding.found = EventPatterns(
        first,
        tuple(
            (index, depth, chain[depth] if raised and depth < len(chain) else raised)
            for index, depth, raised in finding.found.hits
        ),
    )
    finding.places = {
        rank: place._replace(position=_to(place.position, files)) for rank, place in finding.places.items()
    }
    finding.last = _to(finding.last, files)


def _to(position: Position, files: dict[int, int]) -> Position:
    return position._replace(file=files.get(position.file, position.file))


def _moved(event: Event, files: dict[int, int]) -> Event:
    def moved(lines: tuple[Line, ...]) -> tuple[Line, ...]:
        return tuple(line._replace(position=_to(line.position, files)) for line in lines)

    chain = tuple(replace(raised, lines=moved(raised.lines)) for raised in event.chain)
    return replace(event, lines=moved(event.lines), chain=chain)
