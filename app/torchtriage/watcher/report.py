"""Builds the report of an attempt: the parameters of the request and one bundle of logs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from torchtriage.client.torchtriage_client import Facts, Member, Settings, pack, query_of, sendable, whole_file
from torchtriage.watcher.attempt import Attempt
from torchtriage.watcher.job import queue_of
from torchtriage.watcher.kubernetes_messages import job_lines, pod_lines
from torchtriage.watcher.pod import Ending, Json, Pod, seconds

BUNDLE = "report.part"


def facts_of(attempt: Attempt, users: Sequence[str]) -> tuple[Facts, list[str]]:
    """Returns the parameters of the request and labels. `users` are labels or annotations that may name the job's
    user."""
    pods = list(attempt.pods.values())
    cause = _telling(attempt.endings.values())
    pod = attempt.pods[cause.pod]
    job = attempt.job
    marks = {name: text for each in pods for name, text in each.marks.items()}
    began = [str(each.status["startTime"]) for each in pods if each.status.get("startTime")]
    facts = {
        "job_id": job.uid or f"{job.namespace}/{job.name}", "job_name": job.name, "scheduler": "kubernetes",
        "attempt": str(attempt.number), "state": cause.reason, "gpus": str(sum(each.gpus for each in pods) or ""),
        "user": next((marks[name] for name in users if marks.get(name)), ""),
        "queue": next(filter(None, map(queue_of, pods)), ""),
        "exit_code": str(_exit_code(attempt, cause)), "image": next(iter(pod.images), ""),
        "started_at": str(int(seconds(min(began)))) if began else "",
        "ended_at": str(int(max(seconds(ending.time) for ending in attempt.endings.values()))),
    }  # fmt: skip
    shown = {"namespace": job.namespace, "kind": job.kind, "pod": pod.name, "node": pod.node, "pods": str(len(pods))}
    return {name: text for name, text in facts.items() if text}, [f"{name}:{text}" for name, text in shown.items()]


def write_report(attempt: Attempt, settings: Settings, users: Sequence[str], events: list[Json]) -> None:
    """Packs the logs and facts of an attempt into the file BUNDLE in its folder. Raises OSError."""
    members = sendable(_members(attempt, events))
    facts, labels = facts_of(attempt, users)
    with (attempt.folder / BUNDLE).open("wb") as file:
        file.write(json.dumps(query_of(settings, facts, labels)).encode() + b"\n")
        pack(members, file, settings.max_bytes)
        file.flush()
        os.fsync(file.fileno())


def _members(attempt: Attempt, events: list[Json]) -> Iterable[Member]:
    logs = attempt.folder / "logs"
    for path in sorted(logs.rglob("*.log")) if logs.is_dir() else ():
        yield whole_file(path.relative_to(logs).as_posix(), str(path))
    for pod in attempt.pods.values():
        if said := pod_lines(attempt, pod, events):
            yield Member(_kubernetes_lines_path(attempt, pod).relative_to(logs).as_posix(), [said.encode()])
    # This file is never the only one, because the engine learns nothing about the pod from the path of a single file.
    yield Member("kubernetes.log", [job_lines(attempt, events).encode()])


def _kubernetes_lines_path(attempt: Attempt, pod: Pod) -> Path:
    """Returns the path for Kubernetes' lines about a pod, beside the log of the start that failed."""
    starts = [ending.start for ending in attempt.endings.values() if ending.pod == pod.uid]
    return attempt.path(pod, "_kubernetes", max(starts, default=0))


def _telling(endings: Iterable[Ending]) -> Ending:
    """Returns the first ending with a reason more specific than Error, else the first ending."""
    return min(endings, key=lambda ending: (ending.reason == "Error", seconds(ending.time)))


def _exit_code(attempt: Attempt, cause: Ending) -> int | str:
    if cause.exit_code is not None:
        return cause.exit_code
    codes = [ending.exit_code for ending in attempt.endings.values() if ending.exit_code is not None]
    ends = [each.ended for each in attempt.pods[cause.pod].containers if each.ended]
    return next(iter([*codes, *(end.get("exitCode") for end in ends)]), None) or ""
