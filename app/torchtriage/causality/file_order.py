"""Orders the files of a run by their first failure, so that the file in which something failed first comes first."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from torchtriage.causality import context_lines
from torchtriage.causality.clock_offsets import ahead
from torchtriage.causality.findings import Finding
from torchtriage.causality.run_reading import Reading
from torchtriage.domain.event import Event, Where
from torchtriage.domain.line import Line, Position
from torchtriage.matching.matcher import EventPatterns

_MAX_TIMES = 100_000  # times kept of a run


@dataclass(slots=True)
class Clock:
    """Remembers which time each part of a log has. Call `feed` with the kept lines in order, many lines of one file at
    a time."""

    _positions: list[Position] = field(default_factory=list)
    _times: list[str] = field(default_factory=list)

    def feed(self, lines: list[Line]) -> None:
        if len(self._times) >= _MAX_TIMES:
            return
        for line in lines:
            if line.time and (not self._times or self._times[-1] != line.time):
                self._positions.append(line.position)
                self._times.append(line.time)

    def at(self, position: Position) -> str | None:
        """Returns the last time in the same file at or above `position`, or None."""
        place = bisect_right(self._positions, position) - 1
        same = place >= 0 and self._positions[place].file == position.file
        return self._times[place] if same else None

    def around(self, position: Position) -> tuple[str | None, str | None]:
        """Returns the nearest times above and below in the same file, each None if there is none."""
        place = bisect_right(self._positions, position)
        below = place < len(self._positions) and self._positions[place].file == position.file
        return self.at(position), self._times[place] if below else None

    @property
    def year(self) -> int:
        """The year of the first time that includes one."""
        return next((int(time[:4]) for time in self._times if time[:4].isdecimal()), 2000)


def infer_times(reading: Reading, clock: Clock) -> Reading:
    """Returns the reading in which findings without a time have the times of nearby lines."""
    findings = (
        replace(finding, around=clock.around(finding.position)) if finding.event.time is None else finding
        for finding in reading.findings
    )
    return replace(reading, findings=tuple(findings))


def order_by_failure(reading: Reading, clock: Clock) -> Reading:
    """Returns the reading with its files reordered: files with failures come in the order of their first failure. Times
    are corrected if a host's clock is known to be wrong. If the times cannot be compared, the files stay in the order
    of their names."""
    failed: dict[int, list[datetime | None]] = {}
    for finding in reading.findings:
        if finding.event.where is not Where.LINE:
            for event in (finding.event, *finding.samples):
                failed.setdefault(event.line.position.file, []).append(_sort_time(event, clock, reading))
    dated = {file: known for file, times in failed.items() if (known := [time for time in times if time])}
    if len(dated) < len(failed) or len({time.tzinfo is None for times in dated.values() for time in times}) > 1:
        return reading
    first = {file: min(times) for file, times in dated.items()}
    files = sorted(first)
    moved = dict(zip(sorted(files, key=lambda file: first[file]), files, strict=True))
    moved = {file: to for file, to in moved.items() if to != file}
    if not moved:
        return reading
    findings = tuple(_with_files_moved(finding, moved) for finding in reading.findings)
    above = context_lines.moved(reading.above, lambda position: _new_position(position, moved))
    errors = reading.errors.moved(lambda position: _new_position(position, moved))
    return replace(reading, findings=findings, facts=reading.facts.moved(moved), above=above, errors=errors)


def _sort_time(event: Event, clock: Clock, reading: Reading) -> datetime | None:
    text = clock.at(event.line.position) or event.time  # All lines have one clock; a report has its own.
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(f"{clock.year}{text[1:]}" if text.startswith("--") else text)
        time -= timedelta(seconds=ahead(event, reading))
        return time if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _with_files_moved(finding: Finding, files: dict[int, int]) -> Finding:
    events = [_moved(event, files) for event in (finding.event, *finding.samples)]
    first, *samples = sorted(events, key=lambda event: event.line.position)
    hits = (
        (index, depth, first.chain[depth] if raised and depth < len(first.chain) else raised)
        for index, depth, raised in finding.found.hits
    )
    places = {
        rank: place._replace(position=_new_position(place.position, files)) for rank, place in finding.places.items()
    }
    last = _new_position(finding.last, files)
    return replace(finding, found=EventPatterns(first, tuple(hits)), samples=tuple(samples), places=places, last=last)


def _new_position(position: Position, files: dict[int, int]) -> Position:
    return position._replace(file=files.get(position.file, position.file))


def _moved(event: Event, files: dict[int, int]) -> Event:
    def moved(lines: tuple[Line, ...]) -> tuple[Line, ...]:
        return tuple(line._replace(position=_new_position(line.position, files)) for line in lines)

    chain = tuple(replace(raised, lines=moved(raised.lines)) for raised in event.chain)
    return replace(event, lines=moved(event.lines), chain=chain)
