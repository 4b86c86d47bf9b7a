"""deploy/kubernetes-jobs, kubeflow, argo, skypilot: what each scheduler does with the exit status of a decision.

Built-in kinds are checked with Kubernetes' schemas. For other kinds, the fields used are listed here with their types
and the version they were read from, because schedulers ignore misspelled fields without a message.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from torchtriage.client.torchtriage_client import Answers, Ending

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"
STATUSES = {
    action: Ending(True, True).status(Answers([], [{"action": action, "mode": "enforce"}]))
    for action in ("stop", "wait", "restart", "restart-excluding", "restart-from-checkpoint")
}
ENDS = (STATUSES["stop"], STATUSES["wait"])
RESTARTS = tuple(status for action, status in STATUSES.items() if action.startswith("restart"))
OWN = (1, 2, 3, 139)  # exit codes of a command, without a decision or in a dry run


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / name).read_text())
    return found


JOB, JOBSET = read("kubernetes-jobs/job.yaml"), read("kubernetes-jobs/jobset.yaml")
RUNTIME, TRAINJOB = read("kubeflow/runtime.yaml"), read("kubeflow/trainjob.yaml")
PYTORCHJOB, WORKFLOW, SKY = read("kubeflow/pytorchjob.yaml"), read("argo/workflow.yaml"), read("skypilot/train.yaml")
JOBSETS = {"jobset": JOBSET["spec"], "trainjob": RUNTIME["spec"]["template"]["spec"]}

# Fields by kind and path. `*` is any name; `{}` is a built-in type with its own schema.
JOBSET_FIELDS: dict[str, Any] = {  # jobset.x-k8s.io/v1alpha2, as in Kubeflow Trainer v2.3
    "failurePolicy": {"maxRestarts": int, "rules": {"name": str, "action": str, "onJobFailureReasons": str}},
    "replicatedJobs": {"name": str, "template": {}},
}
FIELDS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("JobSet", JOBSET["spec"], JOBSET_FIELDS),
    ("TrainingRuntime", RUNTIME["spec"], {  # Kubeflow Trainer v2.3, trainer.kubeflow.org/v1alpha1
        "mlPolicy": {"numNodes": int, "torch": {}},
        "template": {"spec": JOBSET_FIELDS},
    }),
    ("TrainJob", TRAINJOB["spec"], {  # the same
        "runtimeRef": {"apiGroup": str, "kind": str, "name": str},
        "trainer": {"numNodes": int, "image": str, "env": {"name": str, "value": str}, "resourcesPerNode": {}},
    }),
    ("PyTorchJob", PYTORCHJOB["spec"], {  # Training Operator v1.9, kubeflow.org/v1
        "nprocPerNode": str,
        "runPolicy": {"cleanPodPolicy": str},
        "pytorchReplicaSpecs": {"*": {"replicas": int, "restartPolicy": str, "template": {}}},
    }),
    ("Workflow", WORKFLOW["spec"], {  # argoproj.io/v1alpha1, as in hera 7.1
        "entrypoint": str,
        "onExit": str,
        "templates": {
            "name": str, "metadata": {}, "container": {}, "steps": {"name": str, "template": str, "when": str},
            "retryStrategy": {"limit": str, "expression": str},
            "http": {"method": str, "url": str, "headers": {"name": str, "value": str, "valueFrom": {}}, "body": str,
                     "successCondition": str},
        },
    }),
    ("SkyPilot", SKY, {  # SkyPilot 0.14
        "name": str, "num_nodes": int, "setup": str, "run": str, "envs": {"*": str}, "secrets": {"*": type(None)},
        "resources": {"accelerators": str, "job_recovery": {"max_restarts_on_errors": int, "recover_on_exit_codes": int}},
        "file_mounts": {"*": {"name": str, "mode": str}},
    }),
]  # fmt: skip


def misfits(given: Any, fields: Any, path: str = "") -> list[str]:
    """Returns the paths that are not among the known fields."""
    if isinstance(given, list):
        return [found for one in given for found in misfits(one, fields, path)]
    if not isinstance(fields, dict):
        return [] if isinstance(given, fields) else [f"{path}: {given!r}"]
    found = []
    for name, value in given.items() if fields else ():
        known = fields.get(name, fields.get("*"))
        found += [f"{path}.{name}"] if known is None else misfits(value, known, f"{path}.{name}")
    return found


@pytest.mark.parametrize(("kind", "given", "fields"), FIELDS, ids=[kind for kind, *_ in FIELDS])
def test_a_recipe_uses_only_fields_that_its_kind_has(kind: str, given: dict[str, Any], fields: dict[str, Any]) -> None:
    assert misfits(given, fields) == []
    assert misfits({**given, "misspelled": 1}, fields) == [".misspelled"]


def jobs() -> dict[str, dict[str, Any]]:
    """Returns the Job, and the Jobs that the JobSet controller makes from the JobSets."""
    return {
        "job": JOB,
        **{
            name: {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": "train"},
                "spec": one["template"]["spec"],
            }
            for name, spec in JOBSETS.items()
            for one in spec["replicatedJobs"]
        },
    }


def containers() -> dict[str, dict[str, Any]]:
    """Returns the training container of each Kubernetes recipe."""
    found = {name: job["spec"]["template"] for name, job in jobs().items()}
    found |= {kind: spec["template"] for kind, spec in PYTORCHJOB["spec"]["pytorchReplicaSpecs"].items()}
    made = {name: template["spec"]["containers"][0] for name, template in found.items()}
    return {**made, "argo": WORKFLOW["spec"]["templates"][0]["container"]}


@pytest.mark.parametrize("name", list(jobs()))
def test_every_job_fits_its_schema(name: str) -> None:
    job = jobs()[name]
    kubernetes_validate.validate(job, kubernetes_validate.latest_version(), strict=True)
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"  # otherwise Kubernetes rejects the policy
    names = [container["name"] for container in job["spec"]["template"]["spec"]["containers"]]
    for rule in job["spec"]["podFailurePolicy"]["rules"]:
        assert rule.get("onExitCodes", {}).get("containerName", names[0]) in names


@pytest.mark.parametrize("name", list(containers()))
def test_every_container_fits_its_schema(name: str) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "train"},
           "spec": {"containers": [{"name": "train", **containers()[name]}]}}  # fmt: skip
    kubernetes_validate.validate(pod, kubernetes_validate.latest_version(), strict=True)


def pod_failure(job: dict[str, Any], status: int | None) -> str:
    """Returns what a Job does with a pod of this exit status: the action of the first matching rule, or else Count."""
    for rule in job["spec"]["podFailurePolicy"]["rules"]:
        codes = rule.get("onExitCodes")
        if codes and (status in codes["values"]) == (codes["operator"] == "In"):
            return str(rule["action"])
    return "Count"


def jobset_failure(name: str, status: int | None) -> str:
    """Returns what a JobSet does: the action of the first matching rule, or else RestartJobSet."""
    job = jobs()[name]
    assert job["spec"]["backoffLimit"] == 0
    reason = "PodFailurePolicy" if pod_failure(job, status) == "FailJob" else "BackoffLimitExceeded"
    for rule in JOBSETS[name]["failurePolicy"]["rules"]:
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_,:]*", rule["name"])
        if not rule["onJobFailureReasons"] or reason in rule["onJobFailureReasons"]:
            return str(rule["action"])
    return "RestartJobSet"


def pytorchjob_failure(status: int) -> str:
    """Returns what the Training Operator does with `restartPolicy: ExitCode`."""
    assert {one["restartPolicy"] for one in PYTORCHJOB["spec"]["pytorchReplicaSpecs"].values()} == {"ExitCode"}
    return "restart" if status >= 128 else "fail"


def argo_retries(status: int | None) -> bool:
    """Returns the value of the retry expression; if false, Argo does not retry the step."""
    found = re.fullmatch(r"!\(asInt\(lastRetry\.exitCode\) in \[([\d, ]+)\]\)", strategy()["expression"])
    assert found is not None
    return status not in {int(code) for code in found[1].split(",")}


def strategy() -> dict[str, Any]:
    found: dict[str, Any] = WORKFLOW["spec"]["templates"][0]["retryStrategy"]
    return found


def test_a_job_fails_at_once_only_if_the_decision_is_no_restart() -> None:
    for job in jobs().values():
        assert {pod_failure(job, status) for status in ENDS} == {"FailJob"}
        assert {pod_failure(job, status) for status in (*RESTARTS, *OWN)} == {"Count"}


@pytest.mark.parametrize("name", list(JOBSETS))
def test_a_jobset_fails_at_once_only_if_the_decision_is_no_restart(name: str) -> None:
    assert {jobset_failure(name, status) for status in ENDS} == {"FailJobSet"}
    assert {jobset_failure(name, status) for status in (*RESTARTS, *OWN)} == {"RestartJobSet"}


def test_a_pytorchjob_restarts_if_that_is_the_decision() -> None:
    for name in ("Master", "Worker"):
        found = re.search(r"--restart-status (\d+) -- ", containers()[name]["args"][0])
        assert found is not None
        assert containers()[name]["name"] == "pytorch"  # otherwise the operator does not see its exit status
        ending = Ending(True, True, int(found[1]))
        ends = {action: ending.status(Answers([], [{"action": action, "mode": "enforce"}])) for action in STATUSES}
        assert {action: pytorchjob_failure(status or 0) for action, status in ends.items()} == {
            action: "restart" if action.startswith("restart") else "fail" for action in STATUSES
        }


def test_an_argo_step_is_retried_if_that_is_the_decision() -> None:
    assert [argo_retries(status) for status in ENDS] == [False, False]
    assert all(argo_retries(status) for status in (*RESTARTS, *OWN, -1))  # -1: the status is unknown to Argo
    names = {template["name"] for template in WORKFLOW["spec"]["templates"]}
    assert {WORKFLOW["spec"]["entrypoint"], WORKFLOW["spec"]["onExit"]} <= names
    assert "{{retries}}" in {one.get("value") for one in containers()["argo"]["env"]}


def test_skypilot_recovers_a_job_if_that_is_the_decision() -> None:
    recovery = SKY["resources"]["job_recovery"]
    assert recovery["max_restarts_on_errors"] == 0  # the limit for all other exit statuses
    assert set(recovery["recover_on_exit_codes"]) == set(RESTARTS)
    assert "client.py run --decide --exit-code -- " in SKY["run"]
    assert "$TORCHTRIAGE_URL/client.py" in SKY["setup"]
    assert {"TORCHTRIAGE_URL", "TORCHTRIAGE_TOKEN"} == {*SKY["envs"], *SKY["secrets"]}


@pytest.mark.parametrize("name", list(containers()))
def test_the_client_exits_with_the_decisions_status(name: str) -> None:
    container = containers()[name]
    assert " /tmp/client.py run --decide --exit-code " in container["args"][0]
    assert " && exec python3 " in container["args"][0]  # so that signals reach it
    assert {one["name"] for one in container["env"]} >= {"TORCHTRIAGE_URL", "TORCHTRIAGE_TOKEN"}


def test_a_trainjob_uses_the_runtime_and_leaves_it_its_command() -> None:
    reference = TRAINJOB["spec"]["runtimeRef"]
    assert (reference["kind"], reference["name"]) == (RUNTIME["kind"], RUNTIME["metadata"]["name"])
    assert not {"command", "args"} & set(TRAINJOB["spec"]["trainer"])
    assert " -- $TRAIN" in containers()["trainjob"]["args"][0]
    assert [one["name"] for one in TRAINJOB["spec"]["trainer"]["env"]] == ["TRAIN"]
