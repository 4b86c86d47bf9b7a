"""deploy/airflow: what Airflow is told after a failure. AIRFLOW_PYTHON=…/bin/python runs it with the real Airflow."""

from __future__ import annotations

import pytest

from tests.client.running import NOBODY
from tests.recipes.conftest import FakeService, Recipe


@pytest.mark.parametrize(
    ("action", "raised"),
    [
        ("stop", "AirflowFailException"),
        ("wait", "AirflowFailException"),
        ("restart", "AirflowException"),
        ("restart-from-checkpoint", "AirflowException"),
    ],
)
def test_a_command_is_tried_again_only_where_that_is_decided(
    airflow: Recipe, service: FakeService, action: str, raised: str
) -> None:
    service.decisions = [{"action": action}]
    told = airflow.run("airflow_tasks.py", "operator", "3")
    assert told["raised"][0] == raised
    (report,) = service.reports
    assert (report["job_id"], report["job_name"], report["attempt"]) == (
        "nightly/manual__1/train",
        "nightly.train",
        "1",
    )
    assert (report["scheduler"], report["exit_code"]) == ("airflow", "3")
    assert "3\n" in service.logs[0]  # of `env`


def test_a_dry_run_leaves_the_retries_to_airflow(airflow: Recipe, service: FakeService) -> None:
    service.decisions = [{"action": "stop", "mode": "dry-run"}]
    told = airflow.run("airflow_tasks.py", "operator", "3")
    assert told["raised"][0] == "AirflowException"
    assert told["says"] == "the command ended with 3"


def test_a_command_that_ends_well_raises_nothing(airflow: Recipe, service: FakeService) -> None:
    assert "raised" not in airflow.run("airflow_tasks.py", "operator", "0")
    assert [one["job_id"] for one in service.good_ends] == ["nightly/manual__1/train"]
    assert not service.reports


def test_a_task_that_is_killed_ends_its_command(airflow: Recipe, service: FakeService) -> None:
    service.decisions = [{"action": "restart"}]
    assert airflow.run("airflow_tasks.py", "operator", "-1")["raised"][0] == "AirflowException"
    assert service.reports[0]["exit_code"] == "143"


@pytest.mark.parametrize(
    ("decision", "action", "delay"),
    [
        ({"action": "stop"}, "fail", None),
        ({"action": "wait"}, "fail", None),
        ({"action": "restart", "delay_seconds": 120}, "retry", 120.0),
        ({"action": "restart", "delay_seconds": 0}, "retry", None),
        ({"action": "stop", "mode": "dry-run"}, "default", None),
    ],
)
def test_the_retry_policy_does_what_is_decided(
    airflow: Recipe, service: FakeService, decision: dict[str, object], action: str, delay: float | None
) -> None:
    service.decisions = [decision]
    told = airflow.run("airflow_tasks.py", "policy", "0")
    assert (told["action"], told["delay"]) == (action, delay)
    assert service.reports[0]["attempt"] == "1"
    assert "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB." in service.logs[0]


def test_without_a_service_airflow_decides(airflow: Recipe) -> None:
    told = airflow.run("airflow_tasks.py", "policy", "0", url=NOBODY)
    assert told["action"] == "default"
    assert "can't be reached" in told["output"]


def test_callbacks_report_failures_and_good_ends(airflow: Recipe, service: FakeService) -> None:
    airflow.run("airflow_tasks.py", "callbacks", "0")
    assert [one["job_id"] for one in service.reports] == ["nightly/manual__1/train"]
    assert service.good_ends == [{"job_name": "nightly.train", "job_id": "nightly/manual__1/train"}]
