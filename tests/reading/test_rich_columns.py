"""Logs in the columns of rich, and lines that only look so."""

import pytest

from tests.encoded_logs import columns
from tests.logs import BANNER, agent, report, steps, traceback
from torchtriage.reading.unwrap.rich_columns import in_columns, rejoin_columns

LOG = [BANNER, *steps(range(2), count=6), *traceback("KeyError: 'image'"), agent(1), *report((0, 1))]


def rows(width: int, place: str) -> tuple[list[str], list[int]]:
    content, numbers = columns(width, place)(LOG)
    return content.decode().removesuffix("\n").split("\n"), numbers


@pytest.mark.parametrize("width", [80, 100, 133])
@pytest.mark.parametrize("place", ["train.py:7", "launch.py:1200", ""])
def test_messages_are_whole_again_and_bare_of_their_place(width: int, place: str) -> None:
    lines, numbers = rows(width, place)
    assert in_columns(lines)
    whole, first = rejoin_columns(lines)
    assert [line.partition("INFO     ")[2] for line in whole] == [line.rstrip() for line in LOG]
    assert first == numbers


def test_a_time_that_was_not_repeated_is_reported_for_each_row() -> None:
    whole, _ = rejoin_columns(rows(120, "train.py:7")[0])
    assert all(line.startswith("[05/01/26 09:00:0") for line in whole)


def test_a_traceback_in_one_message_has_lines_of_its_own() -> None:
    left = " " * 29
    lines = [
        "[05/01/26 09:00:00] ERROR    it failed in a sentence that has no place in one line of   train.py:7",
        f"{left}the column",
        f"{left}Traceback (most recent call last):",
        f'{left}  File "/job/train.py", line 3, in <module>',
        f"{left}KeyError: 'x'",
        "a line of another writer",
    ]
    assert rejoin_columns(lines) == (
        [
            "[05/01/26 09:00:00] ERROR    it failed in a sentence that has no place in one line of the column",
            "Traceback (most recent call last):",
            '  File "/job/train.py", line 3, in <module>',
            "KeyError: 'x'",
            "a line of another writer",
        ],
        [1, 3, 4, 5, 6],
    )


@pytest.mark.parametrize(
    "lines",
    [
        LOG,
        [f"INFO step {at} of {at}" for at in range(20)],
        [f"[05/01/26 09:00:{at:02}] INFO     step {'x' * at} train.py:{at}" for at in range(20)],
        [],
    ],
)
def test_other_lines_are_in_no_columns(lines: list[str]) -> None:
    assert not in_columns(lines)
