"""Builds the curve of a run's progress, from its first step to its last, with a small number of points."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from math import isfinite

from torchtriage.domain.line import Line
from torchtriage.domain.verdict import ProgressCurve
from torchtriage.facts import progress
from torchtriage.facts.line_forms import LineForms
from torchtriage.runs.run_reading import Reading

MAX_POINTS = 32
_MIN_POINTS = 3
# Facts of log lines that change with the steps.
VALUES = ("last_loss", "validation_loss", "grad_norm", "seconds_per_step", "memory_used")


def progress_curve(reading: Reading) -> ProgressCurve | None:
    """Returns points spread over the run, for the rank with the most values. Returns None if fewer than three lines
    show a step or a value."""
    facts = reading.facts
    lines = _evenly(_of_one_writer((*facts.spread.lines, *facts.progress_lines)))
    values = _values(lines, reading.matcher.patterns.line_forms)
    steps = [progress.step(progress.newest(line.text)) for line in lines]
    telling = [at for at, step in enumerate(steps) if step is not None or values[at]]
    if len(telling) < _MIN_POINTS:
        return None
    dated = facts.span.dated
    columns = {name: tuple(values[at].get(name) for at in telling) for name in VALUES}
    return ProgressCurve(
        lines[0].file,
        tuple(lines[at].number for at in telling),
        tuple(dated(lines[at].time) for at in telling),
        tuple(steps[at] for at in telling),
        {name: column for name, column in columns.items() if any(value is not None for value in column)},
    )


def _of_one_writer(lines: Sequence[Line]) -> list[Line]:
    """Returns the lines of the file and rank that have the most of them, in order and without repeats."""
    by_writer: dict[tuple[int, int | None], dict[int, Line]] = defaultdict(dict)
    for line in lines:
        if line.number:
            by_writer[line.position.file, line.rank][line.position.line] = line
    most = max(by_writer.values(), key=len, default={})
    return [most[at] for at in sorted(most)]


def _evenly(lines: list[Line]) -> list[Line]:
    """Returns at most MAX_POINTS of the lines, evenly spaced, including the first and the last one."""
    if len(lines) <= MAX_POINTS:
        return lines
    places = [line.position.line for line in lines]
    apart = (places[-1] - places[0]) / (MAX_POINTS - 1)
    wanted = {bisect_left(places, round(places[0] + apart * number)) for number in range(MAX_POINTS - 1)}
    return [lines[at] for at in sorted(wanted | {len(lines) - 1})]


def _values(lines: Sequence[Line], forms: LineForms) -> list[dict[str, float]]:
    """Returns the numeric values that each line shows."""
    all_values: list[dict[str, float]] = []
    for line, pointed in zip(lines, forms.pointed([line.text for line in lines]) if lines else (), strict=True):
        values: dict[str, float] = {}
        for form in sorted(pointed):
            if not forms.names(form).isdisjoint(VALUES):
                for value in forms.read(form, line.text):
                    if value.name in VALUES and (number := _number(value.value)) is not None:
                        values.setdefault(value.name, number)
        all_values.append(values)
    return all_values


def _number(value: str | float) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if isfinite(number) else None
