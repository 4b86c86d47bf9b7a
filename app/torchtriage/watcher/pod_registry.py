"""The pods of jobs that are there, and what each is part of."""

from __future__ import annotations

from collections.abc import Iterable

from torchtriage.watcher.attempt import Attempt
from torchtriage.watcher.job import Job, Part, part_of
from torchtriage.watcher.pod import Pod


class PodRegistry:
    """Pods that are part of no job never get in. `bare`: the labels that make a pod without an owner a job."""

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
        """Notes a pod as it is now. -> its part in a job."""
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
        """-> all pods, or those of them that have one of these UIDs."""
        return [self._pods[uid][0] for uid in (list(self._pods) if uids is None else uids) if uid in self._pods]

    def of_job(self, job: Job) -> list[Pod]:
        return [pod for pod, part in self._pods.values() if part.job == job]

    def earlier(self, pod: Pod, part: Part) -> int:
        """-> how many pods had the pod's place in its job before it, as far as they are still there."""
        others = [other for other, its in self._pods.values() if (its.job, its.seat) == (part.job, part.seat)]
        return sum((other.created, other.uid) < (pod.created, pod.uid) for other in others)

    def is_replaced(self, pod: Pod, part: Part, attempt: Attempt) -> bool:
        """-> whether another pod of the attempt has the pod's place in its job."""
        seats = (self._pods[uid][1].seat for uid in attempt.pods if uid in self._pods and uid != pod.uid)
        return part.seat in seats

    def has_heir(self, pod: Pod) -> bool:
        """-> whether another pod has the name by now, so that what was read under it may be that one's."""
        return bool(self._names.get((pod.namespace, pod.name), set()) - {pod.uid})
