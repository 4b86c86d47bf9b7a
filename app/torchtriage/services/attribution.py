"""Decisions for NVIDIA's fault-tolerance launcher: the path of a log on a file system that both see in, a decision out.

The launcher names a log before its workers start, says when they have ended, and asks what to do. What it said of a
log is kept in memory only: after a restart of the service the name of the file tells the job and the attempt.
"""

from __future__ import annotations

import os
import stat
import threading
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from torchtriage.domain.decision import DecisionRecord
from torchtriage.domain.incident import Job
from torchtriage.errors import BadInput, NotFound, UnreadableLog
from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.unpack import Upload
from torchtriage.services.accept import take_in
from torchtriage.services.service import Service
from torchtriage.services.upload_progress import Accepted

# What --ft-per-cycle-applog-prefix=/logs/job_7.log names: /logs/job_7_cycle0.log, /logs/job_7_cycle1.log, …
_CYCLE = lazy_regex(r"(.+)_cycle([0-9]{1,6})(?:\.log)?")
_MOST = 10_000  # logs that are remembered
_PIECE = 1 << 20
_LONGEST_ID = 64  # characters of a path that tell its job: their end, as paths of one site begin alike


class OutsideRoot(BadInput):
    """The path leads out of the folder that the settings name."""

    status = 403
    code = "outside_root"


@dataclass(frozen=True, slots=True)
class Named:
    """A log as the launcher named it: whose job it is of, and which attempt."""

    path: Path
    user: str | None = None
    job_id: str | None = None
    cycle: int | None = None

    def job(self) -> Job:
        """-> what is known of the job; the name of the file tells what the launcher did not."""
        found = _CYCLE.fullmatch(str(self.path))
        prefix, cycle = (found[1], int(found[2])) if found else (str(self.path), None)
        number = self.cycle if self.cycle is not None else cycle
        return Job(job_id=self.job_id or prefix[-_LONGEST_ID:], attempt=number, user=self.user)


class NamedLogs:
    """The logs that launchers named lately, and the incidents that they became. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._named: OrderedDict[Path, Named] = OrderedDict()
        self._taken: OrderedDict[tuple[Path, int, int], Future[Accepted]] = OrderedDict()

    def put(self, named: Named) -> None:
        with self._lock:
            _keep(self._named, named.path, named)

    def of(self, path: Path) -> Named:
        with self._lock:
            return self._named.get(path) or Named(path)

    def take(self, service: Service, path: Path) -> Future[Accepted]:
        """Stores a log as an incident, unless that was done since it was last written -> what ends with it.

        Raises NotFound, UnreadableLog, LogTooLarge, StorageUnavailable.
        """
        with _opened(path) as file:
            found = os.fstat(file.fileno())
            if found.st_size == 0:
                raise UnreadableLog("the log is empty")
            key = (path, found.st_mtime_ns, found.st_size)
            with self._lock:
                known = self._taken.get(key)
            if known is None:
                known = take_in(service, self.of(path).job(), [Upload(path.name, _pieces(file))])
                with self._lock:
                    _keep(self._taken, key, known)
            return known

    def taken(self, path: Path) -> Future[Accepted] | None:
        """-> what ends when the log as it is now is stored; None where nobody asked for that."""
        try:
            found = path.stat()
        except OSError:
            return None
        with self._lock:
            return self._taken.get((path, found.st_mtime_ns, found.st_size))


def checked(service: Service, log_path: str) -> Path:
    """-> the path without links, inside of TRIAGE_ATTRIBUTION_ROOT; there may be no file yet.

    Raises NotFound where the setting is not made, BadInput, OutsideRoot.
    """
    root = service.settings.attribution_root
    if root is None:
        raise NotFound("TRIAGE_ATTRIBUTION_ROOT is not set")
    if not os.path.isabs(log_path) or "\0" in log_path:
        raise BadInput("log_path is not an absolute path", log_path=log_path[:300])
    try:
        path, whole = Path(os.path.realpath(log_path)), Path(os.path.realpath(root))
    except OSError as error:
        raise BadInput(f"log_path: {error.strerror}", log_path=log_path[:300]) from None
    if whole not in path.parents:
        raise OutsideRoot("log_path leads out of TRIAGE_ATTRIBUTION_ROOT", log_path=log_path[:300])
    return path


def recommendation(record: DecisionRecord) -> str:
    """-> the decision in the launcher's words. In a dry run it is told nothing to act on."""
    if record.mode == "dry-run":
        return "UNKNOWN"
    if record.decision.restarts:
        return "RESTART"
    if record.decision.action == "stop":
        return "STOP"
    return "CONTINUE" if record.decision.rule == "not-failed" else "UNKNOWN"


def _opened(path: Path) -> BinaryIO:
    """-> the file, open; a pipe or a link that was put in its place meanwhile is not. Raises NotFound, BadInput."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise NotFound("no such log", log_path=str(path)[:300]) from None
    except OSError as error:
        raise BadInput(f"the log can't be read: {error.strerror}", log_path=str(path)[:300]) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise BadInput("log_path is not a file", log_path=str(path)[:300])
    return os.fdopen(handle, "rb")


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece


def _keep(kept: OrderedDict[Any, Any], key: object, item: object) -> None:
    kept[key] = item
    kept.move_to_end(key)
    while len(kept) > _MOST:
        kept.popitem(last=False)
