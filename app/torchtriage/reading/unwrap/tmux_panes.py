"""A screen that was copied with several panes side by side: the first lines in, where the bar between them stands; all
lines in, those of the panes that show a log out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from torchtriage.reading.unwrap.hard_wrap import BEGINS, joined, width

BARS = "│┃"
_FEWEST = 8  # lines
_NARROWEST = 12  # characters
_NEARLY_ALL = 0.95  # of the lines have the bar
_SAMPLE = 200  # lines
_CORNER = "╭"  # of a box that a program drew


def bars(lines: Sequence[str]) -> list[int]:
    """-> the places of the bars between the panes of a file of which these are the first lines; none most often."""
    some = [line for line in lines[:_SAMPLE] if line.strip()]
    if len(some) < _FEWEST or any(_CORNER in line for line in some):
        return []
    places = Counter(at for line in some for at, char in enumerate(line) if char in BARS)
    found = sorted(at for at, often in places.items() if often >= _NEARLY_ALL * len(some))
    return found if found and found[-1] > _NARROWEST else []


def apart(lines: Sequence[str], at: Sequence[int]) -> tuple[list[str], list[int]]:
    """-> the lines of the pane that shows a log, and the number from 1 of each; of several such, as records in turn."""
    panes = ([line[start:end].rstrip() for line in lines] for start, end in _panes(at))
    every = [pane for pane in panes if max(map(len, pane), default=0) > _NARROWEST]
    told = [sum(BEGINS.match(line) is not None for line in pane) for pane in every]
    logs = [pane for pane, often in zip(every, told, strict=True) if often] or every[:1]
    whole = [_whole(pane) for pane in logs]
    if len(whole) == 1:
        return whole[0]
    records = (
        (number, json.dumps({"log": line, "stream": f"pane {pane}"}))
        for pane, (texts, numbers) in enumerate(whole, 1)
        for line, number in zip(texts, numbers, strict=True)
    )
    turns = sorted(records, key=lambda record: record[0])
    return [line for _, line in turns], [number for number, _ in turns]


def _panes(at: Sequence[int]) -> list[tuple[int, int | None]]:
    ends = [*at, None]
    return [(0, ends[0]), *((before + 1, end) for before, end in zip(at, ends[1:], strict=True))]


def _whole(lines: list[str]) -> tuple[list[str], list[int]]:
    """-> the lines of a pane as they were before it cut them."""
    at = width(lines[:_SAMPLE])
    return joined(lines, at) if at else (lines, list(range(1, len(lines) + 1)))
