"""Decides which attempts failed and when to report them, from the changes of pods.

Only one thread calls it. Slow work, such as reading logs and packing, goes to a `WorkerPool`, which answers later.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from torchtriage.watcher.attempt import TRIES, Attempt, Wanted, load
from torchtriage.watcher.job import Part
from torchtriage.watcher.metrics import Counters
from torchtriage.watcher.options import Options
from torchtriage.watcher.pod import Ending, Pod, seconds
from torchtriage.watcher.pod_registry import PodRegistry
from torchtriage.watcher.report import BUNDLE
from torchtriage.watcher.report_history import ReportHistory

_log = logging.getLogger(__name__)
_LATE = 120.0  # seconds to wait for logs that are still being read when a report is due


class WorkerPool(Protocol):
    """Does slow work in other threads, and calls `read` or `packed` of the controller when it is done."""

    def read(self, attempt: Attempt, wanted: Wanted) -> None: ...

    def pack(self, attempt: Attempt) -> None: ...


class Controller:
    """Keeps the open attempts. An attempt opens with the first failure and closes when it is reported."""

    def __init__(self, options: Options, history: ReportHistory, workers: WorkerPool, counters: Counters) -> None:
        self._options, self._history, self._workers, self._counters = options, history, workers, counters
        self._registry = PodRegistry(options.bare)
        self._open: dict[Path, Attempt] = {}
        self._of: dict[str, Attempt] = {}  # the attempt of each pod, by UID
        self._reading: set[tuple[Path, str]] = set()
        self._asked: set[Path] = set()  # attempts whose logs are being read for the last time
        self._packing: set[Path] = set()

    @property
    def open(self) -> list[Attempt]:
        return list(self._open.values())

    def recover(self) -> None:
        """Continues the attempts that an earlier watcher left. Raises OSError."""
        for folder in sorted(self._options.attempts.glob("*/")):
            try:
                attempt = load(folder)
            except (OSError, ValueError) as error:
                _log.warning(
                    "cannot read an attempt of an earlier watcher", extra={"folder": str(folder), "error": str(error)}
                )
                shutil.rmtree(folder, ignore_errors=True)
                continue
            if attempt.closed:
                self._finish(attempt)
                continue
            self._open[folder] = attempt
            self._of |= dict.fromkeys(attempt.pods, attempt)
            _log.info("continuing an attempt", extra={"attempt": attempt.name})

    def listed(self, namespace: str, pods: list[Pod]) -> None:
        """Takes the list of all pods of a namespace, or of all namespaces if it is empty. Known pods that are not
        listed are gone."""
        there = {pod.uid for pod in pods}
        for pod in self._registry.pods() + [pod for each in self.open for pod in each.pods.values()]:
            if namespace in ("", pod.namespace) and pod.uid not in there:
                self.gone(pod)
        for pod in sorted(pods, key=lambda pod: pod.created):
            self.changed(pod)

    def changed(self, pod: Pod) -> None:
        """Takes the new state of a pod. Opens an attempt if the pod failed and belongs to none."""
        part = self._registry.put(pod)
        if part is None:
            return
        self._counters.pods.set(len(self._registry))
        now = time.time()
        fresh = [ending for ending in pod.endings() if self._is_new(ending, now)]
        attempt = self._of.get(pod.uid) or self._attempt_of(pod, part)
        opened = attempt is None
        if attempt is None:
            if not fresh:
                return
            attempt = self._open_attempt(pod, part, now)
        if attempt.folder in self._packing:
            return
        for ending in attempt.take(pod, fresh, now):
            self._counters.failures.labels(ending.reason).inc()
            details = {"attempt": attempt.name, "pod": pod.name, "container": ending.container, "reason": ending.reason}
            _log.info("failed", extra=details | {"exit_code": ending.exit_code})
        self._of[pod.uid] = attempt
        if opened:
            for other in self._registry.of_job(part.job):
                if other.uid not in self._of:
                    self.changed(other)
        self._ask(attempt, attempt.wanted([pod]))

    def gone(self, pod: Pod) -> None:
        """Takes the last state of a deleted pod. Its logs are deleted too."""
        self.changed(pod)
        self._registry.drop(pod)
        self._counters.pods.set(len(self._registry))
        attempt = self._of.get(pod.uid)
        if attempt is not None and pod.uid not in attempt.gone:
            attempt.gone.add(pod.uid)
            attempt.changed = time.time()

    def read(self, attempt: Attempt, wanted: Wanted, part: Path, problem: str, again: bool) -> None:
        """Takes a log that was read into the file `part`. If that failed, `problem` says why, and `again` whether to
        retry."""
        self._reading.discard((attempt.folder, wanted.key))
        if attempt.folder in self._packing or self._open.get(attempt.folder) is not attempt:
            part.unlink(missing_ok=True)
            return
        if not problem and self._registry.has_heir(wanted.pod):
            problem, again = "another pod has its name", False
        try:
            if not problem:
                part.replace(attempt.path(wanted.pod, wanted.container, wanted.start))
        except OSError as error:
            problem, again = f"the watcher's folder: {error}", True
        attempt.changed = time.time()
        if not problem:
            attempt.read[wanted.key] = wanted.stage
            attempt.missing.pop(wanted.key, None)
        else:
            part.unlink(missing_ok=True)
            attempt.tries[wanted.key] = attempt.tries.get(wanted.key, 0) + 1 if again else TRIES
            if wanted.key not in attempt.read:
                attempt.missing[wanted.key] = problem
                details = {"attempt": attempt.name, "pod": wanted.pod.name, "container": wanted.container}
                _log.warning("no log", extra=details | {"why": problem})
        self._counters.logs.labels("missing" if problem else "read").inc()

    def tick(self, now: float) -> None:
        """Saves changes and closes the attempts that are due. What fails because the disk is full is tried again the
        next time."""
        for attempt in self.open:
            try:
                self._advance(attempt, now)
            except OSError as error:
                _log.error("cannot write to the watcher's folder", extra={"attempt": attempt.name, "error": str(error)})
        self._counters.attempts.set(len(self.open))

    def _advance(self, attempt: Attempt, now: float) -> None:
        if attempt.closed:
            attempt.save()
            self._finish(attempt)
        elif attempt.folder not in self._packing:
            self._ask(attempt, attempt.wanted(attempt.pods.values()))
            if attempt.changed != attempt.saved:
                attempt.save()
            if self._is_due(attempt, now):
                self._close(attempt)

    def packed(self, attempt: Attempt, problem: str) -> None:
        """Takes an attempt whose bundle is in its folder. If packing failed, `problem` says why."""
        if problem:
            _log.warning("cannot pack a report yet", extra={"attempt": attempt.name, "error": problem})
            self._packing.discard(attempt.folder)
            attempt.changed = time.time()
        else:
            attempt.closed = True

    def _is_new(self, ending: Ending, now: float) -> bool:
        return not self._history.knows(ending) and seconds(ending.time) > now - self._options.oldest

    def _attempt_of(self, pod: Pod, part: Part) -> Attempt | None:
        """Returns the open attempt that a pod belongs to: it existed before that attempt failed, and is not part of an
        earlier one."""
        if pod.over and self._history.has_closed(pod):
            return None
        for attempt in self.open:
            same = attempt.job == part.job and part.attempt in (None, attempt.number)
            there = same and seconds(pod.created) <= seconds(attempt.first.time)
            if there and not self._registry.is_replaced(pod, part, attempt):
                return attempt
        return None

    def _open_attempt(self, pod: Pod, part: Part, now: float) -> Attempt:
        number = part.attempt
        if number is None:
            number = max(self._registry.earlier(pod, part), self._history.reported(part.job.key))
        digest = hashlib.sha256(f"{part.job.key} {number} {pod.uid} {now}".encode()).hexdigest()[:16]
        attempt = Attempt(part.job, number, self._options.attempts / digest, now, now)
        self._open[attempt.folder] = attempt
        return attempt

    def _ask(self, attempt: Attempt, wanted: Iterable[Wanted]) -> None:
        for each in list(wanted):
            if (attempt.folder, each.key) not in self._reading:
                self._reading.add((attempt.folder, each.key))
                self._workers.read(attempt, each)

    def _is_due(self, attempt: Attempt, now: float) -> bool:
        reading = any(folder == attempt.folder for folder, _ in self._reading)
        if now - attempt.opened > self._options.settle:
            return not reading or now - attempt.opened > self._options.settle + _LATE
        return not attempt.running() and not reading and now - attempt.changed >= self._options.quiet

    def _close(self, attempt: Attempt) -> None:
        gpus = sum(pod.gpus for pod in attempt.pods.values())
        skipped = "too few GPUs" if gpus < self._options.least_gpus else ""
        if self._history.reported(attempt.job.key) >= self._options.most_reports:
            skipped = "its job reached the limit of reports"
        if skipped:
            _log.info("attempt not reported", extra={"attempt": attempt.name, "why": skipped})
            self._counters.reports.labels("skipped").inc()
            attempt.closed = True
        elif attempt.folder not in self._asked:
            self._asked.add(attempt.folder)
            self._ask(attempt, attempt.wanted(attempt.pods.values(), last=True))
        else:
            self._packing.add(attempt.folder)
            self._workers.pack(attempt)

    def _finish(self, attempt: Attempt) -> None:
        """Moves the bundle to the spool, then records the attempt as reported. After a crash at any step, the next
        watcher continues here, because the attempt is closed already."""
        bundle = attempt.folder / BUNDLE
        if bundle.exists():
            self._options.spool.mkdir(0o700, parents=True, exist_ok=True)
            bundle.replace(self._options.spool / f"{int(attempt.opened)}-{attempt.folder.name}.bundle")
            self._counters.reports.labels("packed").inc()
            _log.info(
                "report packed",
                extra={"attempt": attempt.name, "pods": len(attempt.pods), "missing": len(attempt.missing)},
            )
        now = time.time()
        self._history.note(attempt, self._options.echo, now)
        self._history.save(self._registry.uids | set(self._of), now)
        shutil.rmtree(attempt.folder, ignore_errors=True)
        self._open.pop(attempt.folder, None)
        self._packing.discard(attempt.folder)
        self._asked.discard(attempt.folder)
        self._forget(attempt.pods)

    def _forget(self, pods: Iterable[str]) -> None:
        """Releases the pods of a reported attempt. Failures in them since then belong to the next attempt."""
        for uid in list(pods):
            self._of.pop(uid, None)
        for pod in self._registry.pods(list(pods)):
            self.changed(pod)
