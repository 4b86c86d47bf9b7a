import textwrap

import pytest

from tests.logs import BANNER, agent, steps, traceback
from torchtriage.reading.unwrap.word_wrap import filled, unfilled

LINES = [
    BANNER,
    *steps(range(2), count=6),
    *traceback(
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
    ),
    agent(1),
]


@pytest.mark.parametrize(("width", "mark"), [(72, ""), (78, ""), (74, "> ")])
def test_lines_broken_between_words_are_whole_again(width: int, mark: str) -> None:
    pieces = [textwrap.wrap(line, width, break_long_words=False, replace_whitespace=False) for line in LINES]
    broken = [mark + piece for each in pieces for piece in each]
    at = filled(broken)
    assert at is not None
    whole, numbers = unfilled(broken, at)
    assert whole == [mark + line for line in LINES]
    assert numbers == [sum(map(len, pieces[:place])) + 1 for place in range(len(LINES))]


@pytest.mark.parametrize("lines", [LINES, steps(range(4), count=40), [line[:80] for line in LINES], []])
def test_other_lines_are_not_joined(lines: list[str]) -> None:
    assert filled(lines) is None
