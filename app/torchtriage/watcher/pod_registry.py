"""Keeps the existing pods of jobs, and the place of each in its job."""

from __future__ import annotations

from collections.abc import Iterable

from torchtriage.watcher.attempt import Attempt
from torchtriage.watcher.job import Job, Part, part_of
from torchtriage.watcher.pod import Pod


class PodRegistry:
    """The pods that belong to a job. `bare` is the label selector for pods without an owner that count as jobs."""

    def __init__(self, bare: str) -> None:
        self._bare = bare
        self._pods: dict[str, tuple[Pod, Part]] = {}
        self._names: dict[tuple[str, str], set[str]] = {}

    def __len__(self) -> int:
        return len(self._pods)

    @property
    def uids(self) -> set[str]:
        return set(self._pods)

    def put(self, pod: Pod) -> Part | None:
        """Records the current state of a pod. Returns its place in a job, or None if it has none."""
        part = part_of(pod, self._bare)
        if part is not None:
            self._pods[pod.uid] = (pod, part)
            self._names.setdefault((pod.namespace, pod.name), set()).add(pod.uid)
        return part

    def drop(self, pod: Pod) -> None:
        if self._pods.pop(pod.uid, None) is not None:
            named = self._names[pod.namespace, pod.name]
            named.discard(pod.uid)
            if not named:
                del self._names[pod.namespace, pod.name]

    def pods(self, uids: Iterable[str] | None = None) -> list[Pod]:
        """Returns all pods, or only those with one of these UIDs."""
        return [self._pods[uid][0] for uid in (list(self._pods) if uids is None else uids) if uid in self._pods]

    def of_job(self, job: Job) -> list[Pod]:
        return [pod for pod, part in self._pods.values() if part.job == job]

    def earlier(self, pod: Pod, part: Part) -> int:
        """Returns how many older pods in the registry had the same place in the job."""
        others = [other for other, its in self._pods.values() if (its.job, its.seat) == (part.job, part.seat)]
        return sum((other.created, other.uid) < (pod.created, pod.uid) for other in others)

    def is_replaced(self, pod: Pod, part: Part, attempt: Attempt) -> bool:
        """Returns whether another pod of the attempt has the same place in the job."""
        seats = (self._pods[uid][1].seat for uid in attempt.pods if uid in self._pods and uid != pod.uid)
        return part.seat in seats

    def has_heir(self, pod: Pod) -> bool:
        """Returns whether another pod now has the same name, so that a log read by name may be from that pod."""
        return bool(self._names.get((pod.namespace, pod.name), set()) - {pod.uid})
