"""Separates the panes of a copied terminal screen that has several panes side by side. Returns the lines of those with
a log."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import partial

from torchtriage.reading.unwrap.decoder_interface import Decode, Decoder, Head, Rejoin, from_layout
from torchtriage.reading.unwrap.line_wrapping import LINE_BEGINS, cut_width, rejoin_cut

_BARS = "│┃"
_BAR_BYTES = tuple(bar.encode() for bar in _BARS)
_FIRST = 40  # lines that decide for most files
_MIN_COUNT = 8  # lines
_MIN_WIDTH = 12  # characters
_NEARLY_ALL = 0.95  # share of the lines with the bar
_SAMPLE = 200  # lines
_CORNER = "╭"  # of a box that a program printed


def _recognise(head: Head) -> Decode | None:
    return from_layout(find_panes(head))


def find_panes(head: Head) -> Rejoin | None:
    """Returns a function that separates panes, or None if a file has none."""
    first = head.lines[:_FIRST]
    if not any(sum(bar in line for line in first) * 2 > len(first) for bar in _BAR_BYTES):
        return None
    columns = bar_columns(head.texts)
    return partial(rejoin_panes, bars=columns) if columns else None


def bar_columns(lines: Sequence[str]) -> list[int]:
    """Returns the columns of the bars between panes, from the first lines of a file. Usually empty."""
    some = [line for line in lines[:_SAMPLE] if line.strip()]
    if len(some) < _MIN_COUNT or any(_CORNER in line for line in some):
        return []
    columns = Counter(at for line in some for at, char in enumerate(line) if char in _BARS)
    found = sorted(at for at, often in columns.items() if often >= _NEARLY_ALL * len(some))
    return found if found and found[-1] > _MIN_WIDTH else []


def rejoin_panes(lines: Sequence[str], bars: Sequence[int]) -> tuple[list[str], list[int]]:
    """Returns the lines of the pane with a log, and the number (from 1) of each. If there are several such panes, their
    lines are returned as records."""
    panes = ([line[start:end].rstrip() for line in lines] for start, end in _panes(bars))
    every = [pane for pane in panes if max(map(len, pane), default=0) > _MIN_WIDTH]
    beginnings = [sum(LINE_BEGINS.match(line) is not None for line in pane) for pane in every]
    logs = [pane for pane, count in zip(every, beginnings, strict=True) if count] or every[:1]
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


def _panes(bars: Sequence[int]) -> list[tuple[int, int | None]]:
    ends = [*bars, None]
    return [(0, ends[0]), *((bar + 1, end) for bar, end in zip(bars, ends[1:], strict=True))]


def _whole(lines: list[str]) -> tuple[list[str], list[int]]:
    """Returns the lines of a pane as they were before it cut them."""
    width = cut_width(lines[:_SAMPLE])
    return rejoin_cut(lines, width) if width else (lines, list(range(1, len(lines) + 1)))


DECODER = Decoder("panes side by side", _recognise, compares_lines=True)
