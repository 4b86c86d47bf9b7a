"""Decisions for NVIDIA's fault-tolerance launcher, which sends the path of a log on a shared file system.

The launcher names a log before its workers start, says when they have ended, and asks what to do. What it says about a
log is kept only in memory. After a restart of the service, job and attempt are read from the file's name.
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
from torchtriage.services.accept import accept_later
from torchtriage.services.service import Service
from torchtriage.services.upload_progress import Accepted

# --ft-per-cycle-applog-prefix=/logs/job_7.log makes the files /logs/job_7_cycle0.log, /logs/job_7_cycle1.log, …
_CYCLE = lazy_regex(r"(.+)_cycle([0-9]{1,6})(?:\.log)?")
_MAX_COUNT = 10_000  # maximum number of remembered logs
_PIECE = 1 << 20
_MAX_ID_LENGTH = (
    64  # characters of a path that identify its job: the last ones, because the paths of a site begin alike
)


class OutsideRoot(BadInput):
    """The path is outside the folder in TRIAGE_ATTRIBUTION_ROOT."""

    status = 403
    code = "outside_root"


@dataclass(frozen=True, slots=True)
class Named:
    """A log as the launcher named it, with its job and attempt."""

    path: Path
    user: str | None = None
    job_id: str | None = None
    cycle: int | None = None

    def job(self) -> Job:
        """Returns the known facts about the job. Those that the launcher did not send are read from the file's name."""
        found = _CYCLE.fullmatch(str(self.path))
        prefix, cycle = (found[1], int(found[2])) if found else (str(self.path), None)
        number = self.cycle if self.cycle is not None else cycle
        return Job(job_id=self.job_id or prefix[-_MAX_ID_LENGTH:], attempt=number, user=self.user)


class NamedLogs:
    """The logs that launchers named recently, and the incidents made from them. Thread-safe."""

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
        """Stores a log as an incident, unless this version of the file was stored already. Returns a future with the
        incident.

        Raises NotFound, UnreadableLog, LogTooLarge and StorageUnavailable.
        """
        with _opened(path) as file:
            found = os.fstat(file.fileno())
            if found.st_size == 0:
                raise UnreadableLog("the log is empty")
            key = (path, found.st_mtime_ns, found.st_size)
            with self._lock:
                known = self._taken.get(key)
            if known is None:
                known = accept_later(service, self.of(path).job(), [Upload(path.name, _pieces(file))])
                with self._lock:
                    _keep(self._taken, key, known)
            return known

    def taken(self, path: Path) -> Future[Accepted] | None:
        """Returns the future for the current version of the log, or None if nobody asked to store it."""
        try:
            found = path.stat()
        except OSError:
            return None
        with self._lock:
            return self._taken.get((path, found.st_mtime_ns, found.st_size))


def checked(service: Service, log_path: str) -> Path:
    """Returns the path with links resolved. It is inside TRIAGE_ATTRIBUTION_ROOT; the file need not exist yet.

    Raises NotFound if the setting is empty, BadInput and OutsideRoot.
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
        raise OutsideRoot("log_path is outside TRIAGE_ATTRIBUTION_ROOT", log_path=log_path[:300])
    return path


def recommendation(record: DecisionRecord) -> str:
    """Returns the decision in the launcher's words. In a dry run it is `UNKNOWN`, so that the launcher does nothing."""
    if record.mode == "dry-run":
        return "UNKNOWN"
    if record.decision.restarts:
        return "RESTART"
    if record.decision.action == "stop":
        return "STOP"
    return "CONTINUE" if record.decision.rule == "not-failed" else "UNKNOWN"


def _opened(path: Path) -> BinaryIO:
    """Opens a regular file. Refuses pipes and links, which may have replaced it meanwhile. Raises NotFound and
    BadInput."""
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
    while len(kept) > _MAX_COUNT:
        kept.popitem(last=False)
