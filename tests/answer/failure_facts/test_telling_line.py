"""The line that the program printed just above the exception, and that shows why it came."""

from __future__ import annotations

import pytest

from tests.built_in import built_in_engine
from torchtriage.reading.sources import from_bytes

TRACEBACK = """Traceback (most recent call last):
  File "/job/train.py", line 41, in <module>
    main()
  File "/job/data/scenes.py", line 18, in load
    self.poses = np.stack(poses)
ValueError: need at least one array to stack
"""


def answer(above: str) -> str:
    verdict = built_in_engine().triage(from_bytes(f"{above}\n{TRACEBACK}".encode()))
    assert verdict.answer is not None
    return verdict.answer.says


@pytest.mark.parametrize(
    "line", ["[INFO] 0 scenes found in /data/indoor", "could not read /data/a.exr", "poses/train.json does not exist"]
)
def test_a_line_that_shows_why_is_quoted_with_its_number(line: str) -> None:
    assert answer(f"seed 1\n{line}\nbuilding the loader").endswith(f'Just above, the log says "{line}" (line 2).')


@pytest.mark.parametrize("line", ["Found 812 scenes in /data/indoor", "UserWarning: failed to load image extension"])
def test_other_lines_are_not_quoted(line: str) -> None:
    assert "Just above" not in answer(line)


def test_a_line_far_above_is_not_quoted() -> None:
    printed = "\n".join(f"option {number}" for number in range(20))
    assert "Just above" not in answer(f"could not read /data/a.exr\n{printed}")
