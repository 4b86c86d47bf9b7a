"""Measures the cost of a log of 50 KB independently of the machine's load: `python -m bench.engine_cost`.

Prints a row per kind of log: the number of executed lines of Python, which is the same in every run, and the CPU time
in multiples of a fixed piece of Python work that takes turns with it. Exits with status 1 if a figure is a quarter
above its budget, or so far below it that the budget should be lowered. A test checks the number of lines.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

from bench.fresh import failed, healthy, short
from torchtriage.engine import Engine
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.loader import load
from torchtriage.reading.sources import from_bytes

MAX_SHARE, MIN_SHARE = 1.25, 0.7  # of a budget
_LOGS = 3  # logs whose executed lines are counted
_WARM = 3  # logs that are read first, so that compiling patterns does not count
_ROUNDS = 40
_WORD = re.compile(r"\w+")
_TEXT = "\n".join(f"step {step} loss {step / 7:.4f} rank {step % 8} host gpu-{step % 64:03}" for step in range(600))


KINDS: dict[str, Callable[[int], bytes]] = {
    "short lines, one failure": short,
    "healthy": healthy,
    "512 ranks, 511 waiting": failed,
}
# Lines of Python per log, and CPU time in pieces of `fixed_work`. If you raise one, say in the commit why it is worth
# it.
BUDGETS: dict[str, tuple[int, float]] = {
    "short lines, one failure": (72_000, 8.4),
    "healthy": (36_000, 4.1),
    "512 ranks, 511 waiting": (67_600, 9.3),
}


def executed_lines(work: Callable[[], object]) -> int:
    """Returns how many lines of Python a call executes. Each iteration of a loop counts."""
    count = 0

    def trace(_frame: FrameType, event: str, _value: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def lines_of(engine: Engine, kind: str) -> int:
    """Returns the number of executed lines for a log of this kind: the mean of some logs that are new to the engine."""
    make = KINDS[kind]
    for seed in range(_WARM):
        engine.triage(from_bytes(make(seed)))
    data = [make(_WARM + number) for number in range(_LOGS)]
    return round(statistics.mean(executed_lines(partial(engine.triage, from_bytes(one))) for one in data))


def fixed_work() -> int:
    """A fixed piece of work: extracts words from lines, counts them, writes JSON and reads it."""
    counts: dict[str, int] = {}
    for line in _TEXT.split("\n"):
        for word in _WORD.findall(line):
            counts[word] = counts.get(word, 0) + 1
    return len(json.loads(json.dumps(counts)))


def ratio_of(engine: Engine, kind: str, rounds: int = _ROUNDS) -> float:
    """Returns the CPU time of a log of this kind in pieces of fixed work. For both, uses the minimum of many turns,
    which was disturbed least."""
    own, fixed = [], []
    for seed in range(100, 100 + rounds):
        run = from_bytes(KINDS[kind](seed))
        fixed.append(_seconds(fixed_work))
        own.append(_seconds(partial(engine.triage, run)))
    return min(own) / min(fixed)


def problem(what: str, measured: float, budget: float) -> str | None:
    """Returns what is wrong with a figure, or None if it is within its budget."""
    if measured > MAX_SHARE * budget:
        return f"{what}: {measured:g} is more than a fourth above its budget of {budget:g}"
    if measured < MIN_SHARE * budget:
        return f"{what}: {measured:g} is far below its budget of {budget:g}; lower that"
    return None


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> int:
    engine = Engine(load([BUILT_IN]))
    problems: list[str | None] = []
    print(
        "| log of 50 KB | lines of Python | of its budget | pieces of fixed work | of its budget |\n|---|---|---|---|---|"
    )
    for kind in KINDS:
        lines, ratio = lines_of(engine, kind), ratio_of(engine, kind)
        most_lines, most_ratio = BUDGETS[kind]
        print(f"| {kind} | {lines:,} | {lines / most_lines:.2f} | {ratio:.2f} | {ratio / most_ratio:.2f} |", flush=True)
        problems += [problem(f"{kind}, lines", lines, most_lines), problem(f"{kind}, time", ratio, most_ratio)]
    told = [one for one in problems if one]
    print("\n".join(told), end="\n" if told else "")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
