"""Brings the findings of a run's files into one order: the file in which something failed first comes first."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from torchtriage.causality.findings import Finding
from torchtriage.causality.run_reading import RunReading
from torchtriage.domain.event import Event, Where
from torchtriage.domain.line import Line
from torchtriage.matching.matcher import Found
from torchtriage.reading.lines import FILE_SPAN

_MOST_TIMES = 100_000  # kept of a run


@dataclass(slots=True)
class Clock:
    """What time it was where, by the lines that tell it. Feed it the kept lines in order, many of one file at once."""

    _orders: list[int] = field(default_factory=list)
    _times: list[str] = field(default_factory=list)

    def feed(self, lines: list[Line]) -> None:
        if len(self._times) >= _MOST_TIMES:
            return
        for line in lines:
            if line.time and (not self._times or self._times[-1] != line.time):
                self._orders.append(line.order)
                self._times.append(line.time)

    def at(self, order: int) -> str | None:
        """-> the time of the last line up to `order` that tells one, of the same file."""
        place = bisect_right(self._orders, order) - 1
        same = place >= 0 and self._orders[place] // FILE_SPAN == order // FILE_SPAN
        return self._times[place] if same else None

    def tell(self, findings: Iterable[Finding]) -> None:
        """Gives findings that tell no time of their own those of the lines around."""
        for finding in findings:
            if finding.event.time is None:
                place = bisect_right(self._orders, finding.order)
                below = place < len(self._orders) and self._orders[place] // FILE_SPAN == finding.order // FILE_SPAN
                finding.around = self.at(finding.order), self._times[place] if below else None

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
                failed.setdefault(event.line.order // FILE_SPAN, []).append(_moment(event, clock))
    told = {file: known for file, times in failed.items() if (known := [time for time in times if time])}
    if len(told) < len(failed) or len({time.tzinfo is None for times in told.values() for time in times}) > 1:
        return
    first = {file: min(times) for file, times in told.items()}
    files = sorted(first)
    moved = dict(zip(sorted(files, key=lambda file: first[file]), files, strict=True))
    shifts = {file: (to - file) * FILE_SPAN for file, to in moved.items() if to != file}
    if shifts:
        for finding in reading.findings:
            _shift(finding, shifts)
        reading.environment.move(shifts)


def _moment(event: Event, clock: Clock) -> datetime | None:
    told = clock.at(event.line.order) or event.time  # The lines' clock is one for all; a report has its own.
    if told is None:
        return None
    try:
        time = datetime.fromisoformat(f"{clock.year}{told[1:]}" if told.startswith("--") else told)
        return time if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _shift(finding: Finding, shifts: dict[int, int]) -> None:
    events = [_shifted(event, shifts) for event in (finding.event, *finding.samples)]
    events.sort(key=lambda event: event.line.order)
    first, *finding.samples = events
    chain = first.chain
    finding.found = Found(
        first,
        tuple(
            (index, depth, chain[depth] if raised and depth < len(chain) else raised)
            for index, depth, raised in finding.found.hits
        ),
    )
    finding.places = {
        rank: place._replace(order=place.order + shifts.get(place.order // FILE_SPAN, 0))
        for rank, place in finding.places.items()
    }
    finding.last += shifts.get(finding.last // FILE_SPAN, 0)


def _shifted(event: Event, shifts: dict[int, int]) -> Event:
    def moved(lines: tuple[Line, ...]) -> tuple[Line, ...]:
        return tuple(line._replace(order=line.order + shifts.get(line.order // FILE_SPAN, 0)) for line in lines)

    chain = tuple(replace(raised, lines=moved(raised.lines)) for raised in event.chain)
    return replace(event, lines=moved(event.lines), chain=chain)
