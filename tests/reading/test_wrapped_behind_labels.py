"""Lines that were cut before a collector put each behind a label of its own, and such as were not."""

import json

import pytest

from tests.logs import BANNER, agent, report, steps, traceback
from torchtriage.reading.unwrap.wrapped_behind_labels import find_rejoin

LOG = [BANNER, *steps(range(2), count=4), *traceback("KeyError: 'image'"), agent(1), BANNER, *report((0, 1))]
PIECES = [line[at : at + 80] for line in LOG for at in range(0, max(len(line), 1), 80)]


def undone(lines: list[str]) -> list[str] | None:
    rejoin = find_rejoin([line.encode() for line in lines])
    return rejoin(lines)[0] if rejoin else None


def test_lines_after_a_clock_are_whole_again() -> None:
    result = undone([f"2026-05-01T09:00:{at:02}.5Z {line}" for at, line in enumerate(PIECES)])
    assert result is not None
    assert [line.partition(" ")[2] for line in result] == LOG


def test_records_are_whole_again_and_keep_what_they_show() -> None:
    result = undone([json.dumps({"log": f"{line}\n", "stream": "stderr", "hostname": "gpu-7"}) for line in PIECES])
    assert result is not None
    assert [json.loads(line) for line in result] == [{"host": "gpu-7", "stream": "stderr", "log": line} for line in LOG]


@pytest.mark.parametrize(
    "lines",
    [
        LOG,
        PIECES,  # which have no envelope
        [f"2026-05-01T09:00:{at:02}.5Z {line}" for at, line in enumerate(LOG)],
        [f"[rank{at % 4}]: {line}" for at, line in enumerate(PIECES)],
        [f"[pod/worker-{'abc'[at % 3]}/train] {line}" for at, line in enumerate(PIECES)],  # three writers
        [json.dumps({"step": at, "loss": 0.5}) for at in range(40)],
        [],
    ],
)
def test_other_lines_stay(lines: list[str]) -> None:
    assert undone(lines) is None
