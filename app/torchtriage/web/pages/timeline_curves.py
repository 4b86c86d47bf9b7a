"""The curves of a timeline: how loss, step time and other values of the run developed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from torchtriage.domain.verdict import ProgressCurve
from torchtriage.reading.prefixes.times import seconds_between
from torchtriage.web.pages.timeline_axis import WIDTH

HEIGHT = 34.0  # of a curve's row
_AIR = 4.0  # above and below it
_MAX_COUNT = 4
_MIN_POINTS = 3  # points of a curve
_GAP, _USUAL = 90.0, 5.0  # seconds without progress that are a gap, and how many times the usual ones
_FEW_LINES = 100  # between two lines of progress, of which more may have gone by unread
STEP, STEP_TIME = "step", "seconds_per_step"
_NAMES = ("last_loss", STEP_TIME, "grad_norm", "memory_used", "validation_loss", STEP)  # what tells most first


@dataclass(frozen=True, slots=True)
class Curve:
    """One value over the run. `first`, `last`, `least` and `most` are its first, last, smallest and largest value."""

    name: str
    path: str
    first: float
    last: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Point:
    """The values in one line of progress, and the slice of the chart that shows them."""

    line: int
    time: str | None
    step: int | None
    values: dict[str, float]
    at: float = 0.0
    left: float = 0.0
    width: float = 0.0


@dataclass(frozen=True, slots=True)
class Gap:
    """A time without lines of progress, after the line `after`."""

    left: float
    width: float
    seconds: float
    after: int


def points(curve: ProgressCurve | None) -> list[Point]:
    """Returns the values in the lines of progress. If no line prints the time of a step, computes it from the previous
    line."""
    if curve is None:
        return []
    columns = curve.values.items()
    found = [
        Point(line, time, step, {name: value for name, column in columns if (value := column[at]) is not None})
        for at, (line, time, step) in enumerate(zip(curve.lines, curve.times, curve.steps, strict=True))
    ]
    if any(STEP_TIME in point.values for point in found):
        return found
    return found[:1] + [
        replace(point, values=point.values | _since(before, point)) for before, point in pairwise(found)
    ]


def curves(points: Sequence[Point], broken: Collection[float]) -> tuple[Curve, ...]:
    """Returns the values that change, as curves. A curve is interrupted at each `broken` place."""
    drawn = (_curve(name, points, broken) for name in _NAMES)
    return tuple(curve for curve in drawn if curve)[:_MAX_COUNT]


def gaps(points: Sequence[Point], places: Sequence[float], end: float | None) -> list[tuple[float, float, int]]:
    """Returns (start, end, number of the point before) of each period in seconds without progress. `end` is when the
    run failed. Of a long log only some lines of progress are known, so steps that continued at their pace are no
    gap."""
    if len(places) < _MIN_POINTS:
        return []
    least = max(_GAP, _USUAL * median(after - before for before, after in pairwise(places)))
    paces = [
        seconds / steps
        for n in range(len(points) - 1)
        if (steps := _steps(points, n)) and (seconds := places[n + 1] - places[n])
    ]
    pace = median(paces) if paces else None

    def went_on(n: int, seconds: float) -> bool:
        if n + 1 == len(points):
            return False
        steps = _steps(points, n)
        if steps is None or pace is None:
            return points[n + 1].line - points[n].line > _FEW_LINES
        return steps > 0 and seconds / steps < _USUAL * pace

    stretches = [*pairwise(places), *([(places[-1], end)] if end is not None else [])]
    return [
        (before, after, n)
        for n, (before, after) in enumerate(stretches)
        if after - before > least and not went_on(n, after - before)
    ]


def sliced(points: Sequence[Point]) -> tuple[Point, ...]:
    """Returns the points, each with the slice that is closer to it than to any other point."""
    borders = [0.0, *(round((before.at + after.at) / 2, 1) for before, after in pairwise(points)), WIDTH]
    return tuple(
        replace(point, left=left, width=max(round(right - left, 1), 0.0))
        for point, (left, right) in zip(points, pairwise(borders), strict=True)
    )


def usual(points: Sequence[Point], name: str = STEP_TIME) -> float | None:
    """Returns the median of a value."""
    values = [point.values[name] for point in points if name in point.values]
    return median(values) if values else None


def _steps(points: Sequence[Point], n: int) -> int | None:
    """Returns the number of steps from a point to the next one."""
    before, after = points[n].step, points[n + 1].step
    return after - before if before is not None and after is not None else None


def _since(before: Point, point: Point) -> dict[str, float]:
    seconds = seconds_between(before.time, point.time)
    done = point.step - before.step if point.step is not None and before.step is not None else 0
    return {STEP_TIME: round(seconds / done, 4)} if seconds and done > 0 else {}


def _curve(name: str, points: Sequence[Point], broken: Collection[float]) -> Curve | None:
    known = [
        (point.at, float(value))
        for point in points
        if (value := point.step if name == STEP else point.values.get(name)) is not None
    ]
    values = [value for _, value in known]
    if len(known) < _MIN_POINTS or (min(values) == max(values) and name != STEP_TIME):
        return None
    least, most = min(values), max(values)
    room = (HEIGHT - 2 * _AIR) / ((most - least) or 1.0)
    path, pen = "", "M"
    for place, value in known:
        path += f"{pen}{place:g} {HEIGHT - _AIR - (value - least) * room:.1f}"
        pen = "M" if place in broken else "L"
    return Curve(name, path, values[0], values[-1], least, most)
