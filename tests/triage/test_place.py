"""Which rank a failure belongs to, where its own lines have no rank prefix."""

import pytest

from app.reading.sources import from_bytes
from app.triage.engine import Engine
from tests.logs import report, text, traceback

KEY = "KeyError: 'image'"
MISSING = "FileNotFoundError: [Errno 2] No such file or directory: '/ckpt/step_75/model_world_size_4_rank_2.pt'"
SPAWNED = "-- Process 3 terminated with the following error:"
LAUNCHED = "subprocess.CalledProcessError: Command '['python', '-u', 'train.py', '--local_rank={}']' returned non-zero exit status 1."


@pytest.mark.parametrize(
    ("parts", "rank"),
    [
        ([traceback(KEY)], None),
        ([SPAWNED, traceback(KEY)], 3),
        ([[f"[gpu-7:{rank}] step 1" for rank in range(2)], traceback(KEY, prefix="[gpu-7:1] ")], 1),
        (["world_size=64", traceback(KEY, prefix="[default1]:")], None),
        ([f"the error is `[rank5]: {KEY}`"], 5),
        ([[f"[Rank 12] 2026-05-01 step {step}" for step in range(3)], traceback(KEY)], 12),
        ([[f"[Rank 0] 2026-05-01 step {step}" for step in range(3)], traceback(KEY)], None),
        ([traceback(KEY), LAUNCHED.format(0)], 0),
        ([traceback(KEY), LAUNCHED.format(3)], None),
        ([traceback(MISSING)], 2),
    ],
)
def test_the_rank_is_told_only_where_the_log_tells_it(
    engine: Engine, parts: list[str | list[str]], rank: int | None
) -> None:
    root = engine.triage(from_bytes(text(*parts))).root_cause
    assert root is not None
    assert root.rank == rank


def test_a_workers_own_exception_inside_the_report_is_read(engine: Engine) -> None:
    lines = report((1, 1))
    at = next(number for number, line in enumerate(lines) if line.startswith("  traceback :"))
    lines[at : at + 1] = ["  traceback : Traceback (most recent call last):",
                          '    File "/job/train.py", line 30, in main', "      step()", f"  {KEY}"]  # fmt: skip
    root = engine.triage(from_bytes(text(lines))).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("usage.python-error", 1)
