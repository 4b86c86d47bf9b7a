"""Lines that were cut at one width or broken between words, and such as are as wide as they were meant."""

import textwrap

import pytest

from tests.decoding import decoded
from tests.logs import BANNER, agent, report, steps, traceback
from torchtriage.reading.unwrap.interleaved_lines import BLANK_LINES
from torchtriage.reading.unwrap.line_wrapping import cut_width, labelled_width, rejoin_cut, rejoin_words, wrap_width

LOG = [BANNER, *steps(range(2), count=4), *traceback("KeyError: 'image'"), agent(1), BANNER, *report((0, 1))]


def wrapped_lines(at: int, mark: str = "") -> list[str]:
    return [mark + line[start : start + at] for line in LOG for start in range(0, max(len(line), 1), at)]


@pytest.mark.parametrize("at", [72, 80, 100, 120])
@pytest.mark.parametrize("mark", ["", "> "])
def test_lines_that_were_cut_are_whole_again(at: int, mark: str) -> None:
    lines = wrapped_lines(at, mark)
    assert cut_width(lines) == at + len(mark)
    whole, numbers = rejoin_cut(lines, at + len(mark))
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
    assert cut_width(lines) is None


def test_empty_lines_between_all_lines_come_out() -> None:
    lines = [each for line in LOG for each in (line, "")]
    found = decoded(BLANK_LINES, "\n".join(lines).encode())
    assert found == list(zip(range(1, 2 * len(LOG), 2), LOG, strict=True))
    assert decoded(BLANK_LINES, "\n".join(LOG).encode()) is None


def test_rows_of_a_table_that_are_all_as_wide_were_not_cut() -> None:
    names = (
        "trainer-of-monday-master",
        "worker-of-the-first-shelf",
        "porter-of-the-second-shelf",
        "keeper-of-the-last",
    )
    assert cut_width([f"{name:60}1/1     Completed" for name in names]) is None


LABELLED = traceback(
    "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
    prefix="[rank3]: ",
)


def test_the_rest_of_a_labelled_line_is_below_it_without_the_label() -> None:
    lines = [line[start : start + 80] for line in LABELLED for start in range(0, len(line), 80)]
    assert labelled_width(["$ torchrun train.py", *lines]) == 80
    assert rejoin_cut(lines, 80)[0] == LABELLED


@pytest.mark.parametrize(
    "below", [[], ["W0501 09:10:00 41 api.py:10] Sending"], ["Killed"], ["wandb: Find logs at: x"]]
)
def test_below_the_longest_labelled_line_another_one_may_follow(below: list[str]) -> None:
    assert labelled_width([*LABELLED, *below]) is None


SENTENCES = [
    BANNER,
    *steps(range(2), count=6),
    *traceback(
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
    ),
    agent(1),
]


@pytest.mark.parametrize(("width", "mark"), [(72, ""), (78, ""), (74, "> ")])
def test_lines_broken_between_words_are_whole_again(width: int, mark: str) -> None:
    pieces = [textwrap.wrap(line, width, break_long_words=False, replace_whitespace=False) for line in SENTENCES]
    broken = [mark + piece for each in pieces for piece in each]
    at = wrap_width(broken)
    assert at is not None
    whole, numbers = rejoin_words(broken, at)
    assert whole == [mark + line for line in SENTENCES]
    assert numbers == [sum(map(len, pieces[:place])) + 1 for place in range(len(SENTENCES))]


@pytest.mark.parametrize("lines", [SENTENCES, steps(range(4), count=40), [line[:80] for line in SENTENCES], []])
def test_lines_that_were_not_broken_between_words_stay(lines: list[str]) -> None:
    assert wrap_width(lines) is None


# As sacct prints it: each row is as wide as its columns.
TABLE = [
    "JobID           JobName  Partition    Account  AllocCPUS      State ExitCode ",
    "------------ ---------- ---------- ---------- ---------- ---------- -------- ",
    "4211789         pretrain        gpu        nlp        512 OUT_OF_ME+    0:125 ",
    "4211789.bat+      batch                   nlp         64 OUT_OF_ME+    0:125 ",
    "4211789.ext+     extern                   nlp        512  COMPLETED      0:0 ",
    "4211789.0        python                   nlp        512     FAILED      1:0 ",
]


def test_the_rows_of_a_table_are_as_wide_as_they_were_meant() -> None:
    rows = [*TABLE, "4211790             eval        gpu        nlp", *TABLE[2:]]
    assert cut_width(rows) is None
    assert wrap_width(rows) is None
    assert rejoin_cut(rows, len(TABLE[0]))[0] == rows
    assert rejoin_words(rows, len(TABLE[0]))[0] == rows
