"""deploy/kubernetes-jobs: what Kubernetes does with each exit status of the client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from torchtriage.client.torchtriage_client import status_of

FOLDER = Path(__file__).resolve().parents[1] / "deploy" / "kubernetes-jobs"
JOB = yaml.safe_load((FOLDER / "job.yaml").read_text())
JOBSET = yaml.safe_load((FOLDER / "jobset.yaml").read_text())


def jobs() -> list[dict[str, Any]]:
    """-> the Job, and those that the JobSet controller makes."""
    made = [
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"train-{one['name']}-0"}, "spec": one["template"]["spec"]}
        for one in JOBSET["spec"]["replicatedJobs"]
    ]  # fmt: skip
    return [JOB, *made]


def pod_failure(job: dict[str, Any], status: int) -> str:
    """-> what a Job does with a pod that ends so: the action of the first rule that fits, else Count."""
    for rule in job["spec"]["podFailurePolicy"]["rules"]:
        codes = rule.get("onExitCodes")
        if codes and (status in codes["values"]) == (codes["operator"] == "In"):
            return str(rule["action"])
    return "Count"


def jobset_failure(status: int) -> str:
    """-> what the JobSet does then: RestartJobSet where no rule fits."""
    (job,) = jobs()[1:]
    assert job["spec"]["backoffLimit"] == 0
    reason = "PodFailurePolicy" if pod_failure(job, status) == "FailJob" else "BackoffLimitExceeded"
    for rule in JOBSET["spec"]["failurePolicy"]["rules"]:
        if not rule["onJobFailureReasons"] or reason in rule["onJobFailureReasons"]:
            return str(rule["action"])
    return "RestartJobSet"


def status(outcome: str, retry: str = "no") -> int:
    found = status_of({"verdict": {"outcome": outcome, "action": {"retry": retry}}})
    assert found is not None
    return found


@pytest.mark.parametrize("job", jobs(), ids=lambda job: str(job["metadata"]["name"]))
def test_every_job_fits_its_schema(job: dict[str, Any]) -> None:
    kubernetes_validate.validate(job, kubernetes_validate.latest_version(), strict=True)
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"  # else Kubernetes refuses the policy
    names = [container["name"] for container in job["spec"]["template"]["spec"]["containers"]]
    for rule in job["spec"]["podFailurePolicy"]["rules"]:
        assert rule.get("onExitCodes", {}).get("containerName", names[0]) in names


@pytest.mark.parametrize("job", jobs(), ids=lambda job: str(job["metadata"]["name"]))
def test_a_job_fails_at_once_only_where_a_fix_comes_first(job: dict[str, Any]) -> None:
    assert pod_failure(job, status("explained")) == "FailJob"
    for other in (status("explained", "yes"), status("explained", "once"), status("unexplained"), 1, 137, 143):
        assert pod_failure(job, other) == "Count", other


def test_a_jobset_fails_at_once_only_where_a_fix_comes_first() -> None:
    assert jobset_failure(status("explained")) == "FailJobSet"
    for other in (status("explained", "yes"), status("unexplained"), 1, 137):
        assert jobset_failure(other) == "RestartJobSet", other


@pytest.mark.parametrize("job", jobs(), ids=lambda job: str(job["metadata"]["name"]))
def test_the_client_is_run_with_its_exit_code(job: dict[str, Any]) -> None:
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert "/tmp/client.py run --exit-code -- torchrun " in container["args"][0]
    assert {one["name"] for one in container["env"]} >= {"TORCHTRIAGE_URL", "TORCHTRIAGE_TOKEN"}
