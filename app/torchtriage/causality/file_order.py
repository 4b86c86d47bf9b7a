"""Orders the files of a run by their first failure, so that the file in which something failed first comes first."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from torchtriage.causality.clock_offsets import ahead
from torchtriage.domain.event import Event, Where
from torchtriage.domain.line import Line, Position
from torchtriage.matching.matcher import EventPatterns
from torchtriage.runs import context_lines
from torchtriage.runs.clock import Clock
from torchtriage.runs.findings import Finding
from torchtriage.runs.run_reading import Reading


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
