"""A trace tells each step of a triage, its time and what it gave; the clock is the caller's."""

import re
from itertools import count
from pathlib import Path

from torchtriage.cli.triage import trace_lines
from torchtriage.domain.trace import Trace
from torchtriage.engine import Engine
from torchtriage.reading.sources import open_path

LOG = Path(__file__).parents[1] / "corpus" / "abort_three_attempts" / "log.txt"
STEPS = ["read", "scan and windows", "lines", "events", "fallbacks", "matches", "cause", "verdict"]


def test_each_step_is_reported_with_its_own_time(engine: Engine) -> None:
    ticks = count()
    trace = Trace(lambda: float(next(ticks)))
    traced = engine.triage(open_path(LOG), trace=trace)
    assert [step.name for step in trace.steps] == STEPS
    assert sum(step.seconds for step in trace.steps) == next(ticks) - 1
    assert all(step.seconds > 0 for step in trace.steps)
    assert trace.steps[0].gave == f"{LOG.stat().st_size:,} bytes"
    plain = engine.triage(open_path(LOG))
    assert traced.root_cause == plain.root_cause


def test_the_page_about_the_architecture_names_each_row_and_where_the_other_steps_run() -> None:
    page = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text("utf-8")
    told = page[page.index("It has these rows:") : page.index("| step |")]
    rows, others = told.split("The other steps", 1)
    assert re.findall("`([a-z ]+)`", rows) == STEPS
    table = re.findall(r"^\| ([a-z]+) \| `", page, re.MULTILINE)
    within = set(re.findall("`([a-z]+)`", others))
    assert [step for step in table if step not in within and step not in " ".join(STEPS)] == []


def test_the_command_prints_a_line_for_each_step(engine: Engine) -> None:
    ticks = count()
    trace = Trace(lambda: float(next(ticks)))
    engine.triage(open_path(LOG), trace=trace)
    lines = [line for line in trace_lines(trace) if not line.startswith("    ")]
    assert [line[:18].strip() for line in lines] == STEPS
    assert any("rule stopped-by-launcher" in line for line in trace_lines(trace))
