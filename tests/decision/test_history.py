from __future__ import annotations

import json
import re

import pytest

from torchtriage.decision.history import read_history
from torchtriage.domain.decision import AttemptRecord

FIRST = {"attempt": 0, "entry": "nccl.timeout", "fingerprint": "v1:a", "step": 100, "host": "gpu-1", "rank": 3}


def test_a_list_and_lines_give_the_same() -> None:
    wanted = (AttemptRecord(0, "explained", "nccl.timeout", "v1:a", 100, "gpu-1", 3), AttemptRecord(1, "unexplained"))
    given = [FIRST, {"attempt": 1}]
    assert read_history(json.dumps(given)) == wanted
    assert read_history("\n".join(map(json.dumps, given)) + "\n") == wanted


def test_of_a_decision_its_attempt_counts() -> None:
    whole = {"action": "restart", "attempt": FIRST | {"outcome": "explained"}, "budget": {}}
    assert read_history(json.dumps(whole)) == read_history(json.dumps([FIRST]))


def test_nothing_is_no_history() -> None:
    assert read_history(" \n") == ()


def test_an_invalid_host_name_is_no_host() -> None:
    assert read_history('[{"attempt": 0, "host": "gpu-1; reboot"}]')[0].host is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("attempt 1", "no JSON: "),
        ("[" * 100_000, "no JSON: "),
        ("7", "0: Input should be a valid dictionary"),
        ('[{"attempt": -1}]', "0.attempt: Input should be greater than or equal to 0"),
        ('{"attempt": 0, "outcome": "fine"}', "0.outcome: String should match pattern"),
        ('{"attempt": 0, "cause": "x"}', "0.cause: Extra inputs are not permitted"),
        (json.dumps([{"attempt": 0}] * 1001), "List should have at most 1000 items"),
    ],
)
def test_a_wrong_history_is_reported_in_one_line(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=rf"^(: )?{re.escape(said)}[^\n]*$"):
        read_history(text)
