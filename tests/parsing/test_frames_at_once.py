"""Frames that are read many at once tell the same as frames that are fed line by line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.collected import Collected
from tests.logs import traceback
from torchtriage.domain.event import Event
from torchtriage.domain.line import Line, Position
from torchtriage.parsing.tracebacks import Tracebacks

FRAMES = [
    '  File "/job/a.py", line 3, in f',
    "    g(x)",
    "    ~^^^",
    '  File "/env/site-packages/b.py", line 9, in g',
    "    raise ValueError(",
    "    ValueError: in the code",
    "      deeper(",
    '    File "/job/wrapped.py", line 2',
    "    Failed = 3",
    '  File "/job/cut.p',
    "    | inside of a group",
    "  two blanks",
    "",
    "    ",
    "\tcode behind a tab",
    "│ a box │",
    "step 3 loss 0.2",
    "Exception ignored in: <function f>",
    "Traceback (most recent call last):",
    "ValueError: bad 3",
    "    'and its second line'",
    "During handling of the above exception, another exception occurred:",
    "-- Process 1 terminated with the following error:",
]


def lines(texts: list[str], gaps: list[int]) -> list[Line]:
    """Returns the lines of one writer; each gap is of so many lines that were left out."""
    number, found = 0, []
    for text, gap in zip(texts, gaps, strict=True):
        number += 1 + gap
        found.append(Line(number, text, text, Position(1, number)))
    return found


def read(kept: list[Line], at_once: bool) -> tuple[list[Event], set[Position], bool]:
    """Returns the events, the positions of lines that were claimed, and whether frames were left out."""
    extractor, claimed, at = Collected(Tracebacks()), set[Position](), 0
    if kept:
        extractor.expect(kept)
    while at < len(kept):
        taken = extractor.read_ahead("", iter(kept[at:])) if at_once else 0
        claimed |= {line.position for line in kept[at : at + taken]}
        if not taken:
            above = kept[at - 1].text if at else ""
            claimed |= {kept[at].position} if extractor.feed(kept[at], above) else set()
        at += taken or 1
    extractor.close()
    return extractor.events, claimed, extractor.deep


@given(st.lists(st.tuples(st.sampled_from(FRAMES), st.sampled_from([0, 0, 0, 0, 0, 0, 500])), max_size=30))
def test_any_lines(expected: list[tuple[str, int]]) -> None:
    texts = ["Traceback (most recent call last):", *(text for text, _ in expected)]
    kept = lines(texts, [0, *(gap for _, gap in expected)])

    assert read(kept, at_once=True) == read(kept, at_once=False)


def test_of_a_deep_traceback_the_innermost_frames_are_kept() -> None:
    deep = traceback("RecursionError: too deep", [("/job/a.py", number, "f", "f()") for number in range(500)])
    kept = lines(deep, [0] * len(deep))

    (event,), claimed, left_out = read(kept, at_once=True)

    assert left_out
    assert len(claimed) == len(deep)
    assert (event,) == tuple(read(kept, at_once=False)[0])
    assert event.exception is not None
    assert event.exception.frames[-1].line == 499


def test_frames_are_taken_together() -> None:
    whole = traceback("ValueError: bad", [("/job/a.py", number, "f", "f()") for number in range(5)])
    kept = lines(whole, [0] * len(whole))
    extractor = Tracebacks()
    extractor.feed(kept[0])

    assert extractor.read_ahead("", iter(kept[1:])) == 10
