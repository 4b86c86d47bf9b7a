"""Remembers in a small file what was reported: which container starts, and how often each job."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from torchtriage.watcher.attempt import Attempt, write_whole
from torchtriage.watcher.pod import Ending, Pod, key_of, seconds

_FOR_EVER = 1e12  # a time in seconds since 1970 that is never reached
_FORGOTTEN = 7 * 86400  # seconds after which entries about deleted pods are dropped


@dataclass
class ReportHistory:
    """What was reported.

    `done` gives, for each start, until which time its ending counts as reported, and when that was recorded. `counts`
    gives, for each job, how many attempts were reported, and when the last one was.
    """

    path: Path
    done: dict[str, tuple[float, float]] = field(default_factory=dict)
    counts: dict[str, tuple[int, float]] = field(default_factory=dict)

    def knows(self, ending: Ending) -> bool:
        return seconds(ending.time) <= self.done.get(ending.key, (0.0, 0.0))[0]

    def has_closed(self, pod: Pod) -> bool:
        """Returns whether the attempt in which the pod ended was reported."""
        return self.done.get(key_of(pod.uid, "", 0), (0.0, 0.0))[0] >= _FOR_EVER

    def reported(self, job: str) -> int:
        """Returns how many attempts of a job were reported."""
        return self.counts.get(job, (0, 0.0))[0]

    def note(self, attempt: Attempt, echo: float, now: float) -> None:
        """Records an attempt as reported. Containers that still run and end within `echo` seconds count as its
        consequences."""
        for key, over in attempt.answers_for():
            until = _FOR_EVER if over else now + echo
            self.done[key] = (max(until, self.done.get(key, (0.0, 0.0))[0]), now)
        self.counts[attempt.job.key] = (self.reported(attempt.job.key) + 1, now)

    def save(self, alive: set[str], now: float) -> None:
        """Writes the file, without old entries of pods that are not in `alive` (UIDs). Raises OSError."""
        self.done = {
            key: value for key, value in self.done.items() if key.split("/")[0] in alive or value[1] > now - _FORGOTTEN
        }
        self.counts = {job: value for job, value in self.counts.items() if value[1] > now - _FORGOTTEN}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self.path, json.dumps({"done": self.done, "counts": self.counts}))


def recall(path: Path) -> ReportHistory:
    """Reads the file; if it does not exist, returns an empty history. Raises OSError, or ValueError if the file is
    invalid."""
    if not path.exists():
        return ReportHistory(path)
    content = json.loads(path.read_text())
    done = {key: (float(until), float(noted)) for key, (until, noted) in content["done"].items()}
    return ReportHistory(
        path, done, {job: (int(count), float(noted)) for job, (count, noted) in content["counts"].items()}
    )
