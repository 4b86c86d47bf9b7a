from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from tests.built_in import built_in_engine
from tests.logs import traceback
from torchtriage.domain.verdict import Verdict
from torchtriage.reading.sources import from_bytes
from torchtriage.web.pages.progress_chart import ProgressChart, progress_chart

BEGAN = datetime(2026, 5, 1, 9)


def step(number: int, after: float) -> str:
    return f"{BEGAN + timedelta(seconds=after)} | step {number} | loss {3 / (number + 1):.4f}"


def verdict(lines: list[str]) -> Verdict:
    return built_in_engine().triage(from_bytes("\n".join(lines).encode(), "run.log"))


def chart(lines: list[str]) -> ProgressChart:
    drawn = progress_chart(verdict(lines))
    assert drawn is not None
    return drawn


def watchdog(after: float) -> str:
    time = BEGAN + timedelta(seconds=after)
    return (
        f"[rank0]:[E{time:%m%d %H:%M:%S}.000000000 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600000 "
        "milliseconds before timing out."
    )


def test_the_silence_before_the_failure_is_a_gap() -> None:
    drawn = chart([*(step(number, 5 * number) for number in range(40)), watchdog(795)])
    assert drawn.silent == 600
    assert (drawn.began, (drawn.ended or "")[:19]) == ("2026-05-01T09:00:00", "2026-05-01T09:13:15")
    (gap,) = drawn.gaps
    assert gap.left + gap.width == 1000
    assert [(mark.kind, mark.at) for mark in drawn.marks] == [("failure", 1000)]
    assert [row.name for row in drawn.rows] == ["last_loss", "seconds_per_step", "step"]
    assert drawn.step_time == 5


def test_a_checkpoint_stands_where_it_was_written() -> None:
    lines = [step(number, 10 * number) for number in range(41)]
    lines.insert(21, f"{BEGAN + timedelta(seconds=200)} Saved checkpoint to /out/checkpoint-20")
    drawn = chart([*lines, *traceback("RuntimeError: boom")])
    saved = next(mark for mark in drawn.marks if mark.kind == "checkpoint")
    assert (saved.at, saved.step, saved.line) == (500, 20, 22)
    failed = next(mark for mark in drawn.marks if mark.kind == "failure")
    assert failed.at == 1000  # It has no time of its own: it stands at the last point above it.


def test_the_slices_cover_the_picture() -> None:
    drawn = chart([step(number, number**1.5) for number in range(30)])
    assert drawn.points[0].left == 0
    for before, after in zip(drawn.points, drawn.points[1:], strict=False):
        assert round(before.left + before.width, 1) == after.left
    assert round(drawn.points[-1].left + drawn.points[-1].width, 1) == 1000


def test_without_times_the_order_of_lines_counts() -> None:
    lines = [f"step {number} loss {3 / (number + 1):.4f}" for number in range(20)]
    drawn = chart([*lines, *traceback("RuntimeError: boom")])
    assert (drawn.began, drawn.ended, drawn.gaps, drawn.silent) == (None, None, (), None)
    assert drawn.points[0].line == 1
    assert drawn.marks[0].at == 1000


def test_times_of_two_kinds_are_not_compared() -> None:
    told = verdict([step(number, number) for number in range(20)])
    curve = told.run.progress
    assert curve is not None
    zoned = replace(curve, times=("2026-05-01T09:00:00+02:00", *curve.times[1:]))
    drawn = progress_chart(replace(told, run=replace(told.run, progress=zoned)))
    assert drawn is not None
    assert drawn.began is None


def test_what_tells_nothing_that_changes_has_no_picture() -> None:
    told = verdict([step(number, number) for number in range(20)])
    assert progress_chart(replace(told, run=replace(told.run, progress=None))) is None
    curve = told.run.progress
    assert curve is not None
    still = replace(curve, steps=(5,) * len(curve.lines), values={}, times=(None,) * len(curve.lines))
    assert progress_chart(replace(told, run=replace(told.run, progress=still))) is None
