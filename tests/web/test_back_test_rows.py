"""What the page of a back-test says: a sentence about the result, and rows that incidents of one message share."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from torchtriage.domain.back_test import BackTest, BackTestStage, ShownIn
from torchtriage.web.pages.back_test_rows import back_test_rows, finding
from torchtriage.web.pages.list_items import IncidentItem
from torchtriage.web.pages.translations import catalogue

ITEM = IncidentItem(
    "1", "unexplained", None, "The queue is full.", None, None, None, None, None, None, None,
    datetime(2026, 5, 1, tzinfo=UTC), 1, None, None, None, None, None,
)  # fmt: skip


def done(**counts: int) -> BackTest:
    return BackTest(BackTestStage.DONE, total=9, looked_at=9, counts=counts)


@pytest.mark.parametrize(
    ("counts", "adds", "key", "count"),
    [
        ({"explains": 4}, False, "finding_explains", 4),
        ({"explains": 4, "takes": 2, "overrides": 1}, False, "finding_others", 3),
        ({"explains": 4, "takes": 2, "alarms": 1}, False, "finding_alarms", 1),
        ({"refines": 5}, True, "finding_refines", 5),
        ({"beside": 3}, False, "finding_beside", 0),
        ({}, False, "finding_nothing", 0),
    ],
)
def test_the_worst_of_the_result_is_the_sentence(counts: dict[str, int], adds: bool, key: str, count: int) -> None:
    found = finding(done(**counts), adds)
    assert found is not None
    assert (found.key, found.count) == (key, count)
    assert key in catalogue()


def test_while_it_runs_there_is_no_sentence() -> None:
    running = BackTest(BackTestStage.RUNNING, counts={"alarms": 1})
    assert finding(running, False) is None


def test_incidents_of_the_same_message_and_verdict_share_a_row() -> None:
    items = {number: replace(ITEM, id=number, detail=f"[rank{number}]: QueueFull") for number in ("2", "9", "10", "11")}
    items["11"] = replace(items["11"], says="Another thing.")
    shown = [ShownIn(number, "unexplained", None) for number in ("2", "9", "10", "11", "12")]
    rows = back_test_rows([*shown, ShownIn("7", "explained", "cuda.oom")], items)
    told = [[one.incident_id for one in row.incidents] for row in rows]
    assert told == [["12"], ["11"], ["10", "9", "2"], ["7"]]  # 12 and 7 were deleted
    assert rows[2].item is items["10"]
