"""Small forms of bench/worst_cases.py: the limits hold, and warnings tell of each one that was hit."""

import json
import sys
from collections import Counter
from itertools import product
from string import ascii_lowercase

import pytest

from tests.logs import BANNER, agent, report, steps, text, traceback
from torchtriage.domain.verdict import Verdict
from torchtriage.engine import Engine
from torchtriage.reading.blocks import MAX_LINE_LENGTH
from torchtriage.reading.sources import LogFile, Run, from_bytes

OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 2 has a total capacity of 79 GiB"
)
WATCHDOG = "torch.distributed.DistBackendError: NCCL watchdog thread terminated with exception"
DEEP = [
    (f"/env/lib/python3.11/site-packages/torch/part{n}.py", n, f"call_{n}", "return self._call()") for n in range(1, 30)
]


def triage(engine: Engine, *parts: str | list[str]) -> Verdict:
    return engine.triage(from_bytes(text(*parts)))


def warns(verdict: Verdict, words: str) -> bool:
    return any(words in warning for warning in verdict.warnings)


def test_equal_tracebacks_of_two_thousand_ranks_are_one_cascade_of_all_of_them(engine: Engine) -> None:
    waiting = [line for rank in range(1, 2000) for line in traceback(WATCHDOG, DEEP, f"[rank{rank}]: ")]
    verdict = triage(engine, BANNER, steps([0]), traceback(OUT_OF_MEMORY, prefix="[rank0]: "), waiting)
    assert verdict.root_cause is not None
    assert (verdict.root_cause.entry, verdict.root_cause.rank) == ("cuda.oom", 0)
    assert [str(cascade.ranks) for cascade in verdict.cascades] == ["1-1999"]


@pytest.mark.slow
def test_thousands_of_different_tracebacks_leave_the_first_as_the_cause(engine: Engine) -> None:
    words = ("".join(letters) for letters in product(ascii_lowercase[:9], repeat=4))
    verdict = triage(engine, traceback(OUT_OF_MEMORY), *(traceback(f"WidgetError: spindle {word}") for word in words))
    assert verdict.root_cause is not None
    assert verdict.root_cause.entry == "cuda.oom"
    assert warns(verdict, "near-duplicate lines skipped")


def test_a_single_line_of_many_megabytes(engine: Engine) -> None:
    chunk = b"loss 0.5 Error: x " * 10_000
    run = from_bytes(text(traceback("KeyError: 'image'")) + chunk * 40 + b"\n")
    verdict = engine.triage(run)
    assert verdict.root_cause is not None
    assert verdict.root_cause.entry == "usage.python-error"
    assert warns(verdict, "longer than")


def test_a_quoted_log_longer_than_the_longest_line(engine: Engine) -> None:
    """Cut in its middle, each of its spelled quotes would be tried as the beginning of another string."""
    quoted = json.dumps(text(traceback("KeyError: 'image'"), traceback('ValueError: "x"', DEEP) * 2000).decode())
    assert len(quoted) > MAX_LINE_LENGTH
    verdict = engine.triage(from_bytes(quoted.encode()))
    assert verdict.root_cause is not None
    assert verdict.root_cause.evidence[0].text.endswith("KeyError: 'image'")


def test_a_list_of_lines_longer_than_the_longest_line(engine: Engine) -> None:
    """Such a line is read in pieces, each of which would end inside of a string."""
    lines = [f"step {at} loss 0.{at} of a run that goes on" for at in range(90_000)] + traceback("KeyError: 'image'")
    listed = json.dumps(lines).encode()
    assert len(listed) > MAX_LINE_LENGTH
    pieces = [listed[at : at + (1 << 20)] for at in range(0, len(listed), 1 << 20)]
    verdict = engine.triage(Run("run", lambda: iter([LogFile("log", lambda: iter(pieces))])))
    assert verdict.root_cause is not None
    assert verdict.root_cause.evidence[0].text.endswith("KeyError: 'image'")
    assert not warns(verdict, "longer than")


def test_nothing_but_errors(engine: Engine) -> None:
    verdict = triage(engine, [f"ValueError: {number}" for number in range(30_000)])
    assert verdict.root_cause is not None
    assert verdict.root_cause.evidence[0].line == 1
    assert warns(verdict, "near-duplicate lines skipped")


def test_every_attempt_is_counted(engine: Engine) -> None:
    attempt = [*steps(range(2)), *traceback(OUT_OF_MEMORY), agent(1, 0)]
    verdict = triage(engine, BANNER, *[attempt] * 200, report((0, 1)))
    assert verdict.root_cause is not None
    assert (verdict.root_cause.entry, verdict.root_cause.attempt) == ("cuda.oom", 0)
    assert verdict.run.attempts == 200


def test_frames_without_end(engine: Engine) -> None:
    frames = [("/job/train.py", 7, "main", "step()")] * 50_000
    verdict = triage(engine, BANNER, traceback("RecursionError: maximum recursion depth exceeded", frames, "[rank5]: "))
    assert verdict.root_cause is not None
    assert (verdict.root_cause.entry, verdict.root_cause.rank) == ("python.recursion", 5)
    assert warns(verdict, "innermost frames")


@pytest.mark.slow
@pytest.mark.parametrize("message", ["board.TileError: {} is odd", "ValueError: {} is wrong", "ImportError: no {}"])
def test_the_work_for_different_failures_of_one_script_grows_with_their_number(engine: Engine, message: str) -> None:
    def calls(count: int) -> int:
        """Returns how often the search for the root cause calls a function, for so many failures."""
        names = ("".join(letters) for letters in product(ascii_lowercase, repeat=3))
        failures = [traceback(message.format(name)) for name, _ in zip(names, range(count), strict=False)]
        called = Counter[bool]()
        sys.setprofile(lambda frame, _, __: called.update(["/causality/" in frame.f_code.co_filename]))
        try:
            triage(engine, *failures)
        finally:
            sys.setprofile(None)
        return called[True]

    assert calls(400) < 5 * calls(100)
