"""How a run went on, from logs as loops print them: which lines stand for it, and what they tell."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from tests.logs import BANNER, report, traceback
from torchtriage.answer.progress_curve import MAX_POINTS
from torchtriage.domain.verdict import ProgressCurve
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes, open_path

BEGAN = datetime(2026, 5, 1, 9)
OUT_OF_MEMORY = traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")


def curve(engine: Engine, lines: list[str]) -> ProgressCurve | None:
    return engine.triage(from_bytes("\n".join(lines).encode(), "run.log")).run.progress


def loop(count: int, label: str = "", pause: int = 0) -> list[str]:
    """Returns `count` steps of two seconds; before the middle one nothing is printed for `pause` seconds."""
    at = [BEGAN + timedelta(seconds=2 * step + (pause if step >= count // 2 else 0)) for step in range(count)]
    return [f"{label}{time} | step {step} | loss {3 / (step + 1):.4f} | grad_norm 0.5" for step, time in enumerate(at)]


def test_the_points_go_from_the_first_step_to_the_last(engine: Engine) -> None:
    found = curve(engine, [*loop(500), *OUT_OF_MEMORY])
    assert found is not None
    assert len(found.lines) <= MAX_POINTS
    assert (found.lines[0], found.steps[0], found.times[0]) == (1, 0, "2026-05-01T09:00:00")
    assert (found.lines[-1], found.steps[-1], found.times[-1]) == (500, 499, "2026-05-01T09:16:38")
    assert found.values["last_loss"][0] == 3.0
    assert found.values["last_loss"][-1] == 0.006
    apart = [after - before for before, after in zip(found.lines, found.lines[1:], strict=False)]
    assert max(apart) < 60


def test_what_goes_by_unkept_is_in_it_too(engine: Engine, tmp_path: Path) -> None:
    lines = loop(60_000)
    log = tmp_path / "run.log"
    log.write_text("\n".join([*lines, *OUT_OF_MEMORY]))
    found = engine.triage(open_path(log)).run.progress
    assert found is not None
    assert [lines[number - 1].split(" | ")[1] for number in found.lines] == [f"step {step}" for step in found.steps]
    apart = [after - before for before, after in zip(found.lines, found.lines[1:], strict=False)]
    assert len(found.lines) > 12
    assert max(apart) < 10_000


def test_the_rank_that_shows_the_most_is_for_the_run(engine: Engine) -> None:
    lines = [
        line
        for step in range(40)
        for line in (f"0: step {step} loss 2.0", *([f"1: step {step} loss 9.0"] * (step < 5)))
    ]
    found = curve(engine, [*lines, *(f"1: {line}" for line in OUT_OF_MEMORY)])
    assert found is not None
    assert set(found.values["last_loss"]) == {2.0}
    assert set(found.times) == {None}


def test_a_loss_that_is_not_a_number_is_not_reported(engine: Engine) -> None:
    found = curve(engine, [*loop(9), *(f"2026-05-01 09:01:{step} | step {step} | loss nan" for step in range(10, 20))])
    assert found is not None
    assert found.values["last_loss"][-1] is None
    assert found.steps[-1] == 19


def test_of_two_lines_no_curve_is_drawn(engine: Engine) -> None:
    assert curve(engine, [*loop(2), *OUT_OF_MEMORY]) is None


def test_a_second_run_in_the_file_has_a_curve_of_its_own(engine: Engine) -> None:
    first = [BANNER, *loop(50), *OUT_OF_MEMORY, *report((0, 1))]
    found = curve(engine, [*first, BANNER, *loop(60, pause=600), *OUT_OF_MEMORY])
    assert found is not None
    assert found.lines[0] > len(first)
    assert (found.steps[0], found.steps[-1]) == (0, 59)
