"""Error lines that no sign knows, anywhere in a run: each form once, with how often, when and on which ranks."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tests.built_in import built_in_engine
from tests.logs import traceback
from torchtriage.answer import run_events
from torchtriage.domain.line import Line, Position
from torchtriage.domain.verdict import RunEvent, Verdict
from torchtriage.reading import hit_selection
from torchtriage.reading.skipped_lines import CountedLines
from torchtriage.reading.sources import from_bytes
from torchtriage.runs.error_lines import MAX_KINDS, ErrorLines

BEGAN = datetime(2026, 5, 1, 9)
FAILED = traceback("RuntimeError: the replicas disagree", [("/job/train.py", 88, "main", "vote(layer)")], "[rank5]: ")


def verdict(lines: list[str]) -> Verdict:
    return built_in_engine().triage(from_bytes("\n".join([*lines, ""]).encode(), "run.log"))


def stamp(step: int) -> str:
    return f"{BEGAN + timedelta(seconds=10 * step):%Y-%m-%d %H:%M:%S},123"


def steps(start: int, end: int) -> list[str]:
    return [f"[{stamp(step)}] [INFO] [rank {rank}] step {step} | loss 2.1 | lr 3.0e-04" for step in range(start, end) for rank in range(8)]  # fmt: skip


def unknown(expected: Verdict) -> list[RunEvent]:
    return [event for event in expected.events if event.standing == "unknown"]


def stale(step: int, rank: int) -> str:
    return f"[{stamp(step)}] [ERROR] [rank {rank}] shard cache: slot {step} answered with a stale generation"


def test_a_form_in_the_middle_of_a_big_log_is_one_event_with_its_count_times_and_ranks() -> None:
    lines = steps(0, 300)
    for step in range(300, 1000):
        lines += [*steps(step, step + 1), *(stale(step, rank) for rank in range(8) if step % 10 == 0)]
    result = verdict([*lines, *steps(1000, 2000), *FAILED])
    (event,) = unknown(result)
    assert (event.count, str(event.ranks), event.kind) == (70 * 8, "0-7", "program")
    assert (event.time, event.until) == ("2026-05-01T09:50:00.123", "2026-05-01T11:45:00.123")
    assert lines[event.line - 1] == stale(300, 0)


@pytest.mark.parametrize(
    "line",
    [
        "[2026-05-01 10:00:00,000] [CRITICAL] [rank 3] weight audit: layer 17 drifted",
        "[rank3]:[E501 10:00:00.123456 Feeder.cpp:77] the lease was taken by nobody",
        "E0501 10:00:00.123456 812 store_watch.cc:77] the lease was taken by nobody",
        "[2026-05-01 10:00:00,000] [rank 3] feeder: error: the shard is short",
        "[2026-05-01 10:00:00,000] [rank 3] failed to reach the parameter cache",
        "[2026-05-01 10:00:00,000] [rank 3] exception in the feeder, shard is short",
        '{"level": "error", "msg": "the feeder is gone", "rank": 3}',
    ],
)
@pytest.mark.parametrize("around", [3, 1500])
def test_it_is_known_by_its_level_or_by_its_words_wherever_it_stands(line: str, around: int) -> None:
    (event,) = unknown(verdict([*steps(0, around), line, *steps(around, 2 * around), *FAILED]))
    assert (event.line, event.count) == (8 * around + 1, 1)


@pytest.mark.parametrize(
    "line",
    [
        "[2026-05-01 10:00:00,000] [WARNING] [rank 3] failed to push 12 points, dropped",
        "[2026-05-01 10:00:00,000] [INFO] [rank 3] failed to find a newer version",
        "[2026-05-01 10:00:00,000] [rank 3] val error: 0.31",
        "10:00:00.079 [I] Unable to start the backend: Failed to open libfoo.so",
        "[2026-05-01 10:00:00,000] [ERROR] [rank 3] sample 12 is empty, skipping",
        "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",  # that a sign knows
    ],
)
@pytest.mark.parametrize("around", [3, 1500])
def test_what_a_sign_knows_or_is_harmless_is_not_reported(line: str, around: int) -> None:
    result = unknown(verdict([*steps(0, around), line, *steps(around, 2 * around), *FAILED]))
    assert [event for event in result if event.line == 8 * around + 1] == []


def test_of_many_forms_those_nearest_to_the_failure_are_reported() -> None:
    names = [chr(97 + number // 26) + chr(97 + number % 26) for number in range(60)]
    lines = steps(0, 500)
    for number, name in enumerate(names):
        lines += [
            *steps(500 + number, 501 + number),
            f"[{stamp(500 + number)}] [ERROR] [rank 1] the {name}x part is loose",
        ]
    result = unknown(verdict([*lines, *steps(560, 1500), *FAILED]))
    assert len(result) == run_events._MAX_UNKNOWN
    assert [event.text.split()[-4] for event in result] == [f"{name}x" for name in names[-len(result) :]]


def test_a_run_that_ended_well_has_none() -> None:
    result = verdict([*steps(0, 50), stale(50, 1), *steps(50, 100), "Training completed successfully."])
    assert result.outcome == "healthy"
    assert unknown(result) == []


def test_a_line_without_a_time_has_that_of_the_line_above() -> None:
    (event,) = unknown(verdict([*steps(0, 1500), "ERROR: the feeder is short of a shard", *steps(1500, 3000), *FAILED]))
    assert event.time == f"{BEGAN + timedelta(seconds=14990):%Y-%m-%dT%H:%M:%S}.123"


def test_lines_between_the_tail_and_the_last_window_are_counted_once() -> None:
    near = [line for step in range(1900, 1990) for line in (*steps(step, step + 1), stale(step, 2))]
    (event,) = unknown(verdict([*steps(0, 1900), *near, *steps(1990, 2000), *FAILED]))
    assert event.count == 90


def test_of_more_lines_than_are_counted_the_last_is_still_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hit_selection, "MAX_ERRORS", 50)
    many = [stale(step, 2) for step in range(100, 2000)]
    (event,) = unknown(verdict([*steps(0, 1500), *many, *steps(2000, 4000), *FAILED]))
    assert 50 <= event.count < len(many)
    assert event.until == f"{BEGAN + timedelta(seconds=19990):%Y-%m-%dT%H:%M:%S}.123"


def test_the_kinds_that_are_counted_are_bounded() -> None:
    counted, errors = CountedLines(), ErrorLines()
    for number in range(2 * MAX_KINDS):
        text = f"ERROR {number:b}".replace("0", "a").replace("1", "b")
        counted.add((number, text.encode()), text.encode(), None)
        errors.add(Line(number, text, text, Position(1, number)))
    assert len(list(counted)) == 256
    assert len(list(errors)) == MAX_KINDS
