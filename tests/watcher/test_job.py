from __future__ import annotations

import kubernetes
import kubernetes_validate
import pytest

from tests.watcher.pods import (
    Json,
    event,
    evicted,
    failed,
    leaving,
    of_job,
    of_jobset,
    of_pytorchjob,
    pod,
    restarted,
    uid,
)
from torchtriage.watcher.job import part_of, queue_of
from torchtriage.watcher.pod import pod_of

RAY = {"ray.io/cluster": "tune-b4xq2", "ray.io/node-type": "worker", "ray.io/group": "gpu"}
VOLCANO = {"volcano.sh/job-name": "bert", "volcano.sh/task-spec": "worker", "volcano.sh/task-index": "3",
           "volcano.sh/job-version": "1", "volcano.sh/queue-name": "night"}  # fmt: skip
KINDS = [
    (of_job("sweep", 3), ("Job", "sweep"), "3", None),
    (pod("plain-x7k2p", ("batch/v1", "Job", "plain")), ("Job", "plain"), "plain-x7k2p", None),
    (pod("idx-0-x7k2p", ("batch/v1", "Job", "idx"), annotations={
        "batch.kubernetes.io/job-completion-index": "0", "batch.kubernetes.io/job-index-failure-count": "2"}),
     ("Job", "idx"), "0", 2),
    (of_jobset("sim", 4, 2, 0)[1], ("JobSet", "sim"), "node/0/1", 4),
    (pod("gpt-node-0-0-x7k2p", ("batch/v1", "Job", "gpt-node-0"), labels={
        "jobset.sigs.k8s.io/jobset-name": "gpt", "jobset.sigs.k8s.io/replicatedjob-name": "node",
        "jobset.sigs.k8s.io/job-index": "0", "trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}),
     ("TrainJob", "gpt"), "node/0/0", None),
    (of_pytorchjob("llama", 2)[2], ("PyTorchJob", "llama"), "worker/1", None),
    (pod("bert-worker-3", ("batch.volcano.sh/v1alpha1", "Job", "bert"), annotations=VOLCANO),
     ("VolcanoJob", "bert"), "worker/3", 1),
    (pod("tune-b4xq2-gpu-worker-8dj2k", ("ray.io/v1", "RayCluster", "tune-b4xq2"), labels=RAY),
     ("RayCluster", "tune-b4xq2"), "tune-b4xq2-gpu-worker-8dj2k", None),
    (pod("tune-b4xq2-head-8dj2k", ("ray.io/v1", "RayCluster", "tune-b4xq2"), labels=RAY | {
        "ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "tune"}),
     ("RayJob", "tune"), "tune-b4xq2-head-8dj2k", None),
    (pod("group-0", labels={"kueue.x-k8s.io/pod-group-name": "group"}), ("PodGroup", "group"), "group-0", None),
    (pod("by-hand", labels={"team": "ml", "app": "train"}), ("Pod", "by-hand"), "by-hand", None),
]  # fmt: skip


@pytest.mark.parametrize(("told", "job", "seat", "attempt"), KINDS, ids=[f"{kind[1][0]}-{kind[2]}" for kind in KINDS])
def test_the_job_of_a_pod_is_found(told: Json, job: tuple[str, str], seat: str, attempt: int | None) -> None:
    part = part_of(pod_of(told), "team=ml,app")
    assert part is not None
    assert ((part.job.kind, part.job.name), part.job.namespace, part.seat, part.attempt) == (job, "ml", seat, attempt)


def test_the_uid_is_that_of_the_job_where_pods_tell_it() -> None:
    parts = [part_of(pod_of(told), "") for told in (of_jobset("sim", 0, 1, 0)[0], of_pytorchjob("llama", 0)[0])]
    assert [part and part.job.uid for part in parts] == [
        uid("jobset", "sim"), uid("kubeflow.org/v1", "PyTorchJob", "llama")]  # fmt: skip


@pytest.mark.parametrize("told", [
    pod("web-5d9c-x7k2p", ("apps/v1", "ReplicaSet", "web-5d9c")), pod("agent-x7k2p", ("apps/v1", "DaemonSet", "agent")),
    pod("by-hand", labels={"team": "web"}), pod("nobody"),
], ids=lambda told: told["metadata"]["name"])  # fmt: skip
def test_other_pods_have_no_job(told: Json) -> None:
    assert part_of(pod_of(told), "team=ml") is None


def test_the_queue() -> None:
    assert queue_of(pod_of(of_jobset("sim", 0, 1, 0)[0])) == "team-a"
    assert queue_of(pod_of(pod("bert-worker-3", annotations=VOLCANO))) == "night"
    assert queue_of(pod_of(pod("none"))) == ""


RUNNING = of_pytorchjob("llama", 0)[0]
RECORDED = {
    "running": RUNNING, "failed": failed(RUNNING), "restarted": restarted(RUNNING, 137, 300, "OOMKilled"),
    "evicted": evicted(RUNNING, 300, "The node was low on resource: memory."), "leaving": leaving(RUNNING, 290),
    "jobset": of_jobset("sim", 0, 1, 0)[0],
}  # fmt: skip


@pytest.mark.parametrize("told", RECORDED.values(), ids=RECORDED)
def test_the_pods_of_these_tests_have_the_form_of_real_ones(told: Json) -> None:
    whole = {"apiVersion": "v1", "kind": "Pod", **told}
    kubernetes_validate.validate(whole, kubernetes_validate.latest_version(), strict=True)
    assert kubernetes.client.V1Pod.from_dict(whole).metadata.uid == told["metadata"]["uid"]


def test_the_events_of_these_tests_have_the_form_of_real_ones() -> None:
    told = {"apiVersion": "v1", "kind": "Event", **event(RUNNING, "Evicted", "The node was low on resource.", 300)}
    kubernetes_validate.validate(told, kubernetes_validate.latest_version(), strict=True)
    assert kubernetes.client.CoreV1Event.from_dict(told).involved_object.name == "llama-master-0"
