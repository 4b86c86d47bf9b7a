"""A pod, from the JSON of the API server: its owner, the state of its containers, and how they ended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

Json = dict[str, Any]
_KEPT = {
    "metadata": (
        "name", "namespace", "uid", "labels", "annotations", "ownerReferences", "creationTimestamp",
        "deletionTimestamp", "deletionGracePeriodSeconds",
    ),
    "status": (
        "phase", "reason", "message", "startTime", "conditions", "containerStatuses", "initContainerStatuses",
    ),
}  # fmt: skip
_GPU = re.compile(r"(?:^|/)(?:gpu|tpu|gaudi|mlu|neuron|Ascend[\w-]*|xpu|dcu)$")
_STOPPED = (137, 143)  # exit codes of containers that were stopped with their pod


@dataclass(frozen=True, slots=True)
class Ending:
    """The failure of one start of a container, or of a whole pod if `container` is empty. `start` counts from 0. `time`
    is in RFC 3339."""

    pod: str
    container: str
    start: int
    reason: str
    message: str
    exit_code: int | None
    time: str

    @property
    def key(self) -> str:
        return key_of(self.pod, self.container, self.start)


@dataclass(frozen=True, slots=True)
class Container:
    """The status of one container. `start` is the number of its newest start, None before the first. `ended` is how
    that start ended, if it did; `before` is how the start before it ended."""

    name: str
    start: int | None
    ended: Json | None
    before: Json | None


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod, with the parts of its JSON that are used."""

    raw: Json

    @property
    def name(self) -> str:
        return str(self.raw["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.raw["metadata"]["namespace"])

    @property
    def uid(self) -> str:
        return str(self.raw["metadata"]["uid"])

    @property
    def labels(self) -> dict[str, str]:
        return self.raw["metadata"].get("labels") or {}

    @property
    def marks(self) -> dict[str, str]:
        """Annotations and labels together, because controllers differ in which of them they use."""
        return {**(self.raw["metadata"].get("annotations") or {}), **self.labels}

    @property
    def owner(self) -> Json | None:
        owners = self.raw["metadata"].get("ownerReferences") or []
        return next((owner for owner in owners if owner.get("controller")), None)

    @property
    def created(self) -> str:
        return str(self.raw["metadata"].get("creationTimestamp") or "")

    @property
    def status(self) -> Json:
        return self.raw.get("status") or {}

    @property
    def node(self) -> str:
        return str(self.raw["spec"].get("nodeName") or "")

    @property
    def images(self) -> list[str]:
        return [container["image"] for container in self.raw["spec"]["containers"] if container.get("image")]

    @property
    def gpus(self) -> int:
        asked = (container.get("resources") or {} for container in self.raw["spec"]["containers"])
        amounts = ({**(each.get("requests") or {}), **(each.get("limits") or {})} for each in asked)
        return sum(int(n) for each in amounts for name, n in each.items() if _GPU.search(name) and str(n).isdigit())

    @property
    def over(self) -> bool:
        return self.status.get("phase") in ("Succeeded", "Failed")

    @property
    def leaving(self) -> bool:
        """Whether the pod is being deleted. Its logs are deleted with it."""
        return "deletionTimestamp" in self.raw["metadata"]

    @property
    def containers(self) -> list[Container]:
        """The main containers, and those init containers that failed or restarted."""
        main = [_container(status) for status in self.status.get("containerStatuses") or []]
        first = [_container(status) for status in self.status.get("initContainerStatuses") or []]
        return [each for each in first if _failed(each.ended) or _failed(each.before)] + main

    def endings(self) -> Iterator[Ending]:
        """Yields what failed. Yields nothing if the pod succeeded or someone stopped it."""
        if self.status.get("phase") == "Succeeded":
            return
        own = self._own_ending()
        if own is not None:
            yield own
        for each in self.containers:
            start = each.start or 0
            for ended, number in ((each.before, start - 1), (each.ended, start)):
                if ended is not None and _failed(ended) and not self._stopped(ended, own is not None):
                    yield Ending(
                        self.uid, each.name, max(number, 0), ended.get("reason") or "Error",
                        ended.get("message") or "", ended.get("exitCode"), ended.get("finishedAt") or self._last(),
                    )  # fmt: skip

    def _own_ending(self) -> Ending | None:
        """Returns the ending of the pod itself: the cluster removed it, or the kubelet refused or ended it."""
        for condition in self.status.get("conditions") or []:
            if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
                return self._pod_failure(condition, str(condition.get("lastTransitionTime") or self.created))
        if self.status.get("phase") == "Failed" and self.status.get("reason"):
            return self._pod_failure(self.status, self._last())
        return None

    def _pod_failure(self, details: Json, time: str) -> Ending:
        reason, message = self.status.get("reason"), self.status.get("message") or details.get("message") or ""
        return Ending(self.uid, "", 0, str(reason or details.get("reason") or "Failed"), str(message), None, time)

    def _last(self) -> str:
        ends = [
            str(each.ended["finishedAt"]) for each in self.containers if each.ended and each.ended.get("finishedAt")
        ]
        turns = [str(turn.get("lastTransitionTime") or "") for turn in self.status.get("conditions") or []]
        return max([*ends, *turns, str(self.status.get("startTime") or self.created)])

    def _stopped(self, ended: Json, taken: bool) -> bool:
        """Returns whether a container ended because its pod was removed or deleted. The ending of the pod covers
        that."""
        if ended.get("exitCode") not in _STOPPED or ended.get("reason") == "OOMKilled":
            return False
        return taken or (self.leaving and seconds(ended.get("finishedAt")) >= self._deletion_requested_at())

    def _deletion_requested_at(self) -> float:
        metadata = self.raw["metadata"]  # deletionTimestamp is the end of the grace period
        grace = timedelta(seconds=int(metadata.get("deletionGracePeriodSeconds") or 0)).total_seconds()
        return seconds(metadata.get("deletionTimestamp")) - grace


def pod_of(raw: Json) -> Pod:
    """Returns a pod with only the used parts of its JSON, because a cluster can have many pods."""
    kept: Json = {
        part: {name: raw[part][name] for name in names if name in raw.get(part, {})} for part, names in _KEPT.items()
    }
    spec = raw["spec"]
    containers = [{k: each[k] for k in ("name", "image", "resources") if k in each} for each in spec["containers"]]
    kept["spec"] = {"nodeName": spec.get("nodeName"), "containers": containers}
    kept["metadata"].get("annotations", {}).pop("kubectl.kubernetes.io/last-applied-configuration", None)
    return Pod(kept)


def key_of(pod: str, container: str, start: int) -> str:
    """Returns the key of one start of a container, or of the pod itself if `container` is empty."""
    return f"{pod}/{container}/{start}"


def seconds(moment: str | None) -> float:
    """Converts a time of the API server to seconds since 1970; None gives 0."""
    return datetime.fromisoformat(moment).timestamp() if moment else 0.0


def _container(status: Json) -> Container:
    state, last = status.get("state") or {}, status.get("lastState") or {}
    restarts = int(status.get("restartCount") or 0)
    ended, before = state.get("terminated"), last.get("terminated")
    if "waiting" in state:  # while a container waits, its newest start is over and is in lastState
        return Container(status["name"], restarts if before else None, before, None)
    return Container(status["name"], restarts, ended, before)


def _failed(ended: Json | None) -> bool:
    return ended is not None and ended.get("exitCode") != 0
