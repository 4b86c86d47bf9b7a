"""Screens with several panes side by side, and lines with bars of their own."""

import json

import pytest

from tests.logs import BANNER, agent, report, steps, traceback
from torchtriage.reading.unwrap.tmux_panes import bar_columns, rejoin_panes

LOG = [BANNER, *steps(range(2), count=6), *traceback("KeyError: 'image'"), agent(1), *report((0, 1))]
WIDTH = 90


def wrapped_lines(lines: list[str]) -> list[str]:
    return [line[at : at + WIDTH] for line in lines for at in range(0, max(len(line), 1), WIDTH)]


def test_the_pane_with_the_log_is_read() -> None:
    lines = [
        f"{at % 7} of seven│{line:{WIDTH}}│top - 09:0{at % 10}:00 up 3 days"
        for at, line in enumerate(wrapped_lines(LOG))
    ]
    places = bar_columns(lines)
    assert places == [10, WIDTH + 11]
    assert rejoin_panes(lines, places)[0] == [line.rstrip() for line in LOG]


def test_of_two_logs_each_is_a_stream_of_its_own() -> None:
    lines = [f"{line:{WIDTH}}│{line}" for line in wrapped_lines(LOG)]
    items = [json.loads(line) for line in rejoin_panes(lines, bar_columns(lines))[0]]
    for pane in ("pane 1", "pane 2"):
        assert [each["log"] for each in items if each["stream"] == pane] == [line.rstrip() for line in LOG]


@pytest.mark.parametrize(
    "lines",
    [
        LOG,
        ["╭" + "─" * 60 + "╮", *(f"│{line[:60]:60}│" for line in LOG), "╰" + "─" * 60 + "╯"],
        [f"│ {line}" for line in LOG],
        [f"{at:4} │ {line}" for at, line in enumerate(LOG)],
        [f" 45%|████│ {at}/100" for at in range(40)],
        [],
    ],
)
def test_other_lines_have_no_panes(lines: list[str]) -> None:
    assert bar_columns(lines) == []
