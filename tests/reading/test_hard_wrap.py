"""Lines that were cut at one width, and such as are as wide as they were meant."""

import pytest

from tests.logs import BANNER, agent, report, steps, traceback
from torchtriage.reading.unwrap.hard_wrap import doubled, joined, labelled_width, single, width

LOG = [BANNER, *steps(range(2), count=4), *traceback("KeyError: 'image'"), agent(1), BANNER, *report((0, 1))]


def cut(at: int, mark: str = "") -> list[str]:
    return [mark + line[start : start + at] for line in LOG for start in range(0, max(len(line), 1), at)]


@pytest.mark.parametrize("at", [72, 80, 100, 120])
@pytest.mark.parametrize("mark", ["", "> "])
def test_lines_that_were_cut_are_whole_again(at: int, mark: str) -> None:
    lines = cut(at, mark)
    assert width(lines) == at + len(mark)
    whole, numbers = joined(lines, at + len(mark))
    assert whole == [mark + line for line in LOG]
    assert [lines[number - 1] for number in numbers] == [mark + line[:at] for line in LOG]


@pytest.mark.parametrize(
    "lines",
    [
        LOG,
        [f"[rank {at % 4}] step {at:06} loss 0.5000 grad norm 1.2500 tokens per second 10233.1 memory 71.2" for at in range(99)],
        [each for at in range(30) for each in (f"[rank {at % 4}] step {at:06} loss 0.5000 grad norm 1.2500 tokens per second 10233.1 memory 71.2", "saved")],
        ["=" * 80, "a title", "=" * 80, "what it says", "=" * 80],
        ["|" + "cell".ljust(86) + "|" for _ in range(20)],
        [line.ljust(200) for line in LOG if len(line) <= 200],
        ["short"] * 20,
        [],
    ],
)  # fmt: skip
def test_lines_that_are_as_wide_as_they_were_meant_stay(lines: list[str]) -> None:
    assert width(lines) is None


def test_empty_lines_between_all_lines_come_out() -> None:
    lines = [each for line in LOG for each in (line, "")]
    assert doubled(lines)
    assert not doubled(LOG)
    assert single(lines) == (LOG, list(range(1, 2 * len(LOG), 2)))


def test_rows_of_a_table_that_are_all_as_wide_were_not_cut() -> None:
    names = (
        "trainer-of-monday-master",
        "worker-of-the-first-shelf",
        "porter-of-the-second-shelf",
        "keeper-of-the-last",
    )
    assert width([f"{name:60}1/1     Completed" for name in names]) is None


LABELLED = traceback(
    "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
    prefix="[rank3]: ",
)


def test_the_rest_of_a_labelled_line_stands_below_it_without_the_label() -> None:
    lines = [line[start : start + 80] for line in LABELLED for start in range(0, len(line), 80)]
    assert labelled_width(["$ torchrun train.py", *lines]) == 80
    assert joined(lines, 80)[0] == LABELLED


@pytest.mark.parametrize(
    "below", [[], ["W0501 09:10:00 41 api.py:10] Sending"], ["Killed"], ["wandb: Find logs at: x"]]
)
def test_below_the_longest_labelled_line_another_one_may_follow(below: list[str]) -> None:
    assert labelled_width([*LABELLED, *below]) is None
