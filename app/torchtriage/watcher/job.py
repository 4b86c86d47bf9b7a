"""Finds the job that a pod belongs to, from the pod's owner, labels and annotations.

Jobs themselves are never read, so the watcher needs no permission for them.
"""

from __future__ import annotations

from dataclasses import dataclass

from torchtriage.watcher.pod import Json, Pod

_JOBSET = "jobset.sigs.k8s.io/"
_TRAINING = "training.kubeflow.org/"
_TRAINER = "trainer.kubeflow.org/trainjob-ancestor-step"
_RAY = "ray.io/"
_INDEX = "batch.kubernetes.io/job-completion-index"
_FAILURES = "batch.kubernetes.io/job-index-failure-count"
_GROUP = "kueue.x-k8s.io/pod-group-name"
_QUEUES = (
    "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/local-queue-name", "volcano.sh/queue-name",
    "scheduling.volcano.sh/queue-name", "kai.scheduler/queue", "runai/queue",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Job:
    """A job that has pods. `uid` is empty if its pods do not give it."""

    namespace: str
    kind: str
    name: str
    uid: str

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.kind}/{self.name}/{self.uid}"


@dataclass(frozen=True, slots=True)
class Part:
    """The place of a pod in its job.

    `seat` names what a replacement pod takes over, such as worker/3. `attempt` is the number of the job's attempt, if
    the job's controller counts them.
    """

    job: Job
    seat: str
    attempt: int | None = None


def part_of(pod: Pod, bare: str) -> Part | None:
    """Returns the pod's place in a job, or None if it belongs to no job. A pod without an owner is a job of its own if
    its labels match the selector `bare`, such as `team=ml,train`."""
    marks = pod.marks
    if name := marks.get(_JOBSET + "jobset-name"):
        return _jobset_part(pod, name)
    if marks.get(_RAY + "originated-from-crd") == "RayJob" and (name := marks.get(_RAY + "originated-from-cr-name")):
        # The pods of its cluster, and the pod that submits to it.
        return Part(Job(pod.namespace, "RayJob", name, ""), pod.name)
    owner = pod.owner
    if owner is not None:
        return _owner_part(pod, owner)
    if name := marks.get(_GROUP):
        return Part(Job(pod.namespace, "PodGroup", name, ""), pod.name)
    if bare and _fits(pod.labels, bare):
        return Part(Job(pod.namespace, "Pod", pod.name, pod.uid), pod.name)
    return None


def queue_of(pod: Pod) -> str:
    """Returns the queue of Kueue, Volcano or another scheduler that the pod went through, or an empty string."""
    return next((pod.marks[name] for name in _QUEUES if pod.marks.get(name)), "")


def _jobset_part(pod: Pod, name: str) -> Part:
    marks = pod.marks
    kind = "TrainJob" if _TRAINER in marks else "JobSet"
    seat = [marks.get(_JOBSET + "replicatedjob-name", ""), marks.get(_JOBSET + "job-index", ""), marks.get(_INDEX, "0")]
    attempt = _number(marks.get(_JOBSET + "restart-attempt"))
    return Part(Job(pod.namespace, kind, name, marks.get(_JOBSET + "jobset-uid", "")), "/".join(seat), attempt)


def _owner_part(pod: Pod, owner: Json) -> Part | None:
    marks, group, kind = pod.marks, str(owner["apiVersion"]).partition("/")[0], str(owner["kind"])
    job = Job(pod.namespace, kind, str(owner["name"]), str(owner["uid"]))
    if group == "kubeflow.org":
        seat = [marks.get(_TRAINING + "replica-type", ""), marks.get(_TRAINING + "replica-index", pod.name)]
        return Part(job, "/".join(seat))
    if (group, kind) == ("batch.volcano.sh", "Job"):
        seat = [marks.get("volcano.sh/task-spec", ""), marks.get("volcano.sh/task-index", pod.name)]
        named = Job(job.namespace, "VolcanoJob", job.name, job.uid)
        return Part(named, "/".join(seat), _number(marks.get("volcano.sh/job-version")))
    if (group, kind) == ("ray.io", "RayCluster"):
        return Part(job, pod.name)
    if (group, kind) == ("batch", "Job"):
        return Part(job, marks.get(_INDEX, pod.name), _number(marks.get(_FAILURES)))
    return None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def _fits(labels: dict[str, str], selector: str) -> bool:
    terms = [term.strip().partition("=") for term in selector.split(",") if term.strip()]
    return all(labels.get(name) == value if equals else name in labels for name, equals, value in terms)
