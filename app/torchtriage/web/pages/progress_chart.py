"""How a run went on, to be drawn: a verdict's curve of progress in, rows of a picture out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from torchtriage.domain.verdict import ProgressCurve, Verdict
from torchtriage.reading.prefixes.times import seconds_between

WIDTH, ROW = 1000.0, 40.0  # of the frame; each row is as high
_AIR = 5.0  # above and below a curve
_MOST_ROWS = 4
_LEAST = 3  # points of a row
_COMPARABLE = 0.8  # part of the points that must tell a time
_GAP, _USUAL = 90.0, 5.0  # seconds without progress that are a gap, and how many times the usual ones
STEP, STEP_TIME = "step", "seconds_per_step"
_ROWS = (
    "last_loss",
    STEP_TIME,
    "grad_norm",
    "memory_used",
    "validation_loss",
    STEP,
    "learning_rate",
)  # what tells most first


@dataclass(frozen=True, slots=True)
class Row:
    """One value over the run. `path` is its curve; `first`, `last`, `least` and `most` are its values."""

    name: str
    path: str
    first: float
    last: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Point:
    """What one line of progress tells, and the slice of the picture that stands for it."""

    line: int
    time: str | None
    step: int | None
    values: dict[str, float]
    left: float = 0.0
    width: float = 0.0


@dataclass(frozen=True, slots=True)
class Mark:
    """`kind`: checkpoint or failure; `step` is that of a checkpoint."""

    kind: str
    at: float
    line: int
    file: str | None
    time: str | None
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Gap:
    """A stretch of time in which no line tells progress."""

    left: float
    width: float
    seconds: float


@dataclass(frozen=True, slots=True)
class ProgressChart:
    """`began` and `ended` are the times at the picture's edges, None where it is in the order of lines. `silent`:
    seconds from the last line of progress to the failure, where those are a gap; `step_time`: seconds that a step
    usually took; `names` are the columns of the table."""

    file: str | None
    rows: tuple[Row, ...]
    points: tuple[Point, ...]
    marks: tuple[Mark, ...] = ()
    gaps: tuple[Gap, ...] = ()
    began: str | None = None
    ended: str | None = None
    silent: float | None = None
    step_time: float | None = None
    names: tuple[str, ...] = ()


def progress_chart(verdict: Verdict) -> ProgressChart | None:
    """-> the picture of how the run went on; None where the log tells too little of that."""
    curve = verdict.run.progress
    if curve is None:
        return None
    points = _points(curve)
    timed = [point for point in points if point.time]
    began = timed[0].time if timed else None
    if len(timed) < _COMPARABLE * len(points) or any(seconds_between(began, point.time) is None for point in timed):
        began = None
    points = points if began is None else _with_step_times(timed)
    known = [_place(point.line, point.time, began) or 0.0 for point in points]
    marks = _marks(verdict, curve, points, began)
    failed = next((mark.at for mark in marks if mark.kind == "failure"), None)
    start, end = known[0], max([*known, *(mark.at for mark in marks)])
    gaps = _gaps(known, failed, start, end) if began is not None else ()
    broken = {gap.left for gap in gaps}
    places = [_along(place, start, end) for place in known]
    rows = [row for name in _ROWS if (row := _row(name, points, places, broken))]
    if not rows:
        return None
    return ProgressChart(
        file=curve.file,
        rows=tuple(rows[:_MOST_ROWS]),
        points=_slices(points, places),
        marks=tuple(replace(mark, at=_along(mark.at, start, end)) for mark in marks),
        gaps=gaps,
        began=began,
        ended=_time_at(end, points, known, marks) if began is not None else None,
        silent=gaps[-1].seconds if gaps and failed is not None and gaps[-1].left == places[-1] else None,
        step_time=_usual(points, STEP_TIME),
        names=tuple(row.name for row in rows if row.name != STEP),
    )


def _points(curve: ProgressCurve) -> list[Point]:
    columns = curve.values.items()
    return [
        Point(line, time, step, {name: value for name, column in columns if (value := column[at]) is not None})
        for at, (line, time, step) in enumerate(zip(curve.lines, curve.times, curve.steps, strict=True))
    ]


def _with_step_times(points: list[Point]) -> list[Point]:
    """-> the points, with how long a step took since the one before, where no line prints that."""
    if any(STEP_TIME in point.values for point in points):
        return points
    told = points[:1]
    for before, point in pairwise(points):
        seconds = seconds_between(before.time, point.time)
        done = point.step - before.step if point.step is not None and before.step is not None else 0
        values = point.values | {STEP_TIME: round(seconds / done, 4)} if seconds and done > 0 else point.values
        told.append(replace(point, values=values))
    return told


def _marks(verdict: Verdict, curve: ProgressCurve, points: Sequence[Point], began: str | None) -> list[Mark]:
    """-> checkpoints and the first failure, each `at` seconds since the first point, or at its line. A failure without
    a time stands at the last point above it."""
    root = verdict.root_cause
    line = root.evidence[0] if root and root.evidence else None
    told = [("checkpoint", one.line, one.file, one.time, one.step) for one in verdict.run.checkpoints]
    if root is not None and line is not None:
        above = [point.time for point in points if point.line < line.line] if line.file == curve.file else []
        told.append(("failure", line.line, line.file, root.time or (above[-1] if above else None), None))
    marks = []
    for kind, number, file, time, step in told:
        at = _place(number, time, began) if began is not None or file == curve.file else None
        if at is not None:
            marks.append(Mark(kind, max(at, 0.0), number, file, time, step))
    return marks


def _place(line: int, time: str | None, began: str | None) -> float | None:
    """-> seconds since the first point; the line's number where the picture is in the order of lines."""
    return float(line) if began is None else seconds_between(began, time)


def _time_at(place: float, points: Sequence[Point], known: Sequence[float], marks: Sequence[Mark]) -> str | None:
    """-> the time of the point or mark at a place."""
    times = {mark.at: mark.time for mark in marks} | dict(zip(known, (point.time for point in points), strict=True))
    return times.get(place)


def _along(place: float, start: float, end: float) -> float:
    return round(WIDTH * (place - start) / ((end - start) or 1.0), 1)


def _row(name: str, points: Sequence[Point], places: Sequence[float], broken: Collection[float]) -> Row | None:
    """-> the curve of a value, which ends at each `broken` place and begins again behind it; None where few points tell
    it, or all tell the same."""
    told = [
        (place, float(value))
        for point, place in zip(points, places, strict=True)
        if (value := point.step if name == STEP else point.values.get(name)) is not None
    ]
    values = [value for _, value in told]
    if len(told) < _LEAST or (min(values) == max(values) and name != STEP_TIME):
        return None
    least, most = min(values), max(values)
    room = (ROW - 2 * _AIR) / ((most - least) or 1.0)
    path, pen = "", "M"
    for place, value in told:
        path += f"{pen}{place:g} {ROW - _AIR - (value - least) * room:.1f}"
        pen = "M" if place in broken else "L"
    return Row(name, path, values[0], values[-1], least, most)


def _gaps(places: Sequence[float], failed: float | None, start: float, end: float) -> tuple[Gap, ...]:
    apart = [after - before for before, after in pairwise(places)]
    least = max(_GAP, _USUAL * median(apart))
    ends = [*pairwise(places), *([(places[-1], failed)] if failed is not None else [])]
    return tuple(
        Gap(_along(before, start, end), _along(after, start, end) - _along(before, start, end), after - before)
        for before, after in ends
        if after - before > least
    )


def _slices(points: Sequence[Point], places: Sequence[float]) -> tuple[Point, ...]:
    """-> the points, each with the slice around its place that is nearer to it than to any other."""
    borders = [0.0, *(round((before + after) / 2, 1) for before, after in pairwise(places)), WIDTH]
    return tuple(
        replace(point, left=left, width=max(right - left, 0.0))
        for point, (left, right) in zip(points, pairwise(borders), strict=True)
    )


def _usual(points: Sequence[Point], name: str) -> float | None:
    values = [point.values[name] for point in points if name in point.values]
    return median(values) if values else None
