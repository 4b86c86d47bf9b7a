import pytest

from tests.decoding import decoded
from tests.logs import steps, traceback
from torchtriage.reading.blocks import blocks
from torchtriage.reading.unwrap import html_pages
from torchtriage.reading.unwrap.interleaved_lines import OTHERS_LINES
from torchtriage.reading.unwrap.line_endings import LOST_LINE_FEEDS, OTHER_LINE_ENDS

LINES = [*steps(range(2), count=9), *traceback("KeyError: 'x'", prefix="[rank1]: ")]


DECODERS = (OTHER_LINE_ENDS, html_pages.DECODER, LOST_LINE_FEEDS, OTHERS_LINES)


def separated(content: str) -> list[tuple[int, str]] | None:
    return next(filter(None, (decoded(decoder, content.encode()) for decoder in DECODERS)), None)


@pytest.mark.parametrize("end", ["\r", "\u2028", "\x85", " "])
def test_line_ends_of_others(end: str) -> None:
    assert separated(end.join(LINES)) == [(1, line) for line in LINES]


def test_a_page_is_read_as_a_browser_shows_it() -> None:
    page = "<html>\n<p>a &lt;module&gt;<br>b&nbsp;c</p>\n<tr><td>7</td><td>d</td></tr></html>"
    assert [(number, line) for number, line in separated(page) or [] if line.strip()] == [
        (2, "a <module>"),
        (2, "b c"),
        (3, "7 d"),
    ]


def test_lines_of_others_between() -> None:
    chat = ["Ann Lee  9:41 AM", "step 1", "step 2", "Bob  10:02 PM", "step 3"]
    assert separated("\n".join(chat)) == [(2, "step 1"), (3, "step 2"), (5, "step 3")]


def test_lines_that_begin_with_their_times_are_not_chat() -> None:
    log = [f"[2026-05-01 10:{minute:02}:00] epoch {minute // 10} of this run" for minute in range(30)]
    assert separated("\n".join(log)) is None
    assert separated("\n".join(line.replace("epoch", "still busy with") for line in log)) is None
    chat = ["[2026-05-01 10:00:00] Ann Lee", "step 1", "[2026-05-01 10:01:00] Bob", "step 2"]
    assert separated("\n".join(chat)) == [(2, "step 1"), (4, "step 2")]


@pytest.mark.parametrize(
    "lines",
    [
        LINES * 40,
        ["STARTING TIMING RUN AT 2019-05-22 12:09:05 AM", "ENDING TIMING RUN AT 2019-05-22 01:09:05 PM"] * 3,
        ["=" * 70] * 30,
        [" 10%|#  | 1/10 [00:01<00:09]\r 20%|## | 2/10 [00:02<00:08]\r 30%|## | 3/10 [00:02<00:08]\r" * 4],
        ["".join(f"\r{step}it [00:{step},  2.3s/it]" for step in range(10, 40))],
        ["".join(f"\r {step}/50 [=>....] - ETA: 2:36 - loss: 0.31" for step in range(10, 40))],
        ["a line of words that goes on " * 40] * 9,
    ],
)
def test_other_files_are_read_by_the_line(lines: list[str]) -> None:
    assert separated("".join(f"{line}\n" for line in lines)) is None


def test_the_hole_of_a_sparse_file_is_passed_over() -> None:
    chunks = [b"step 1\nstep", bytes(1 << 20), bytes(1000), b" 2\nstep 3\n"]
    assert b"".join(blocks(chunks, "run.log")) == b"step 1\nstep 2\nstep 3\n"
