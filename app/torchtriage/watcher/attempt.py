"""One failed attempt of a job: its pods, how they ended, and their logs, kept in a folder until the attempt is
reported."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import NamedTuple

from torchtriage.watcher.job import Job
from torchtriage.watcher.pod import Container, Ending, Pod, key_of, seconds

# The state of a container when its log was read. A log read in a later state replaces an earlier one. PREVIOUS: the
# container has started again, perhaps even before the log of this start was read.
RUNNING, LEAVING, ENDED, PREVIOUS = 0, 1, 2, 3
_STATE_FILE = "attempt.json"
TRIES = 5  # attempts to read one log


class Wanted(NamedTuple):
    """A log to read, of start number `start` of a container. `previous` asks the API server for the start before the
    newest one. `stage` is one of the states above."""

    pod: Pod
    container: str
    start: int
    previous: bool
    stage: int

    @property
    def key(self) -> str:
        return key_of(self.pod.uid, self.container, self.start)


@dataclass
class Attempt:
    """The facts about one attempt.

    `number` counts the job's attempts from 0. `opened`, `changed` and `saved` are times in seconds. `starts` says which
    start of each container belongs to this attempt. `read` is the state in which each log was read, `missing` is why a
    log could not be read, and `tries` how often that was tried. `gone` are deleted pods.
    """

    job: Job
    number: int
    folder: Path
    opened: float
    changed: float
    pods: dict[str, Pod] = field(default_factory=dict)
    endings: dict[str, Ending] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    tries: dict[str, int] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    closed: bool = False
    saved: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.job.kind} {self.job.namespace}/{self.job.name} attempt {self.number}"

    @property
    def first(self) -> Ending:
        return min(self.endings.values(), key=lambda ending: (seconds(ending.time), ending.reason == "Error"))

    def take(self, pod: Pod, endings: list[Ending], now: float) -> list[Ending]:
        """Records the new state of a pod, with at most one ending per container. Returns the endings that are new."""
        fresh = []
        for ending in endings:
            place = f"{ending.pod}/{ending.container}"
            if ending.container and self.starts.setdefault(place, ending.start) != ending.start:
                continue
            if ending.key not in self.endings:
                self.endings[ending.key] = ending
                fresh.append(ending)
        for each in pod.containers:
            if each.start is not None:
                self.starts.setdefault(f"{pod.uid}/{each.name}", each.start)
        before = self.pods.get(pod.uid)
        if fresh or before is None or before.over != pod.over or before.leaving != pod.leaving:
            self.changed = now
        self.pods[pod.uid] = pod
        return fresh

    def running(self) -> list[Pod]:
        """Returns the pods that may still write logs in this attempt."""
        over = {ending.pod for ending in self.endings.values()} | self.gone
        left = (pod for uid, pod in self.pods.items() if uid not in over and not pod.over)
        return [pod for pod in left if not any(self._past(pod, each) for each in pod.containers)]

    def answers_for(self) -> Iterator[tuple[str, bool]]:
        """Yields the key of each container start that this attempt reports, and whether that start is over."""
        running = {pod.uid for pod in self.running()}
        for uid, pod in self.pods.items():
            over = pod.over or uid in self.gone
            if over or uid in running:  # other pods continue in the next attempt of the job
                yield key_of(uid, "", 0), over
            for container in pod.raw["spec"]["containers"]:
                start = self.starts.get(f"{uid}/{container['name']}", 0)
                yield key_of(uid, container["name"], start), over
        for key in self.endings:
            yield key, True

    def wanted(self, pods: Iterable[Pod], last: bool = False) -> Iterator[Wanted]:
        """Yields the logs to read now. The `last` time, just before the report, this includes containers that still
        run."""
        for pod in pods:
            for each in pod.containers if pod.uid not in self.gone else ():
                want = self._wanted(pod, each)
                if want is None or self.tries.get(want.key, 0) >= TRIES:
                    continue
                known = self.read.get(want.key, -1)
                if want.stage > known or (last and known < ENDED):
                    yield want

    def path(self, pod: Pod, container: str, start: int) -> Path:
        """Returns the path for a log. It has the form of a kubelet's log path, from which the engine reads host and
        attempt."""
        return self.folder / "logs" / f"{pod.namespace}_{pod.name}_{pod.uid}" / container / f"{start}.log"

    def _wanted(self, pod: Pod, each: Container) -> Wanted | None:
        start = self.starts.get(f"{pod.uid}/{each.name}")
        if start is None or each.start is None or each.start > start + 1:
            return None
        if each.start == start + 1:
            return Wanted(pod, each.name, start, True, PREVIOUS)
        stage = ENDED if each.ended is not None else LEAVING if pod.leaving else RUNNING
        return Wanted(pod, each.name, start, False, stage)

    def _past(self, pod: Pod, each: Container) -> bool:
        start = self.starts.get(f"{pod.uid}/{each.name}")
        return start is not None and each.start is not None and each.start > start

    def save(self) -> None:
        """Writes the attempt into its folder, so that it survives a restart of the watcher. Raises OSError."""
        self.saved = self.changed
        content = {
            each.name: getattr(self, each.name) for each in fields(self)
        }  # asdict would copy the JSON of all pods
        content |= {"folder": None, "gone": sorted(self.gone), "job": asdict(self.job)}
        content["pods"] = {uid: {"raw": pod.raw} for uid, pod in self.pods.items()}
        content["endings"] = {key: asdict(ending) for key, ending in self.endings.items()}
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self.folder / _STATE_FILE, json.dumps(content))


def load(folder: Path) -> Attempt:
    """Returns the attempt that was saved in a folder. Raises OSError, or ValueError if there is none."""
    content = json.loads((folder / _STATE_FILE).read_text())
    try:
        job, pods, endings = content.pop("job"), content.pop("pods"), content.pop("endings")
        return Attempt(
            **content | {"folder": folder, "gone": set(content["gone"])},
            job=Job(**job),
            pods={uid: Pod(**pod) for uid, pod in pods.items()},
            endings={key: Ending(**ending) for key, ending in endings.items()},
        )
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{folder}: {error}") from error


def write_whole(path: Path, text: str) -> None:
    """Replaces a file so that a crash leaves either the old or the new one. Raises OSError."""
    part = path.with_name(path.name + ".part")
    with part.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
