"""What is kept: incidents (a stored log with its verdict) and groups of them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any


class State(StrEnum):
    """How far an incident is: received → triaging → triaged, or failed."""

    RECEIVED = "received"
    TRIAGING = "triaging"
    TRIAGED = "triaged"
    FAILED = "failed"

    @property
    def final(self) -> bool:
        return self in (State.TRIAGED, State.FAILED)


class GroupStatus(StrEnum):
    OPEN = "open"
    RESOLVED = "resolved"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class Job:
    """Who and what a failed run was, as its sender said it; None where the sender did not."""

    job_id: str | None = None
    job_name: str | None = None
    cluster: str | None = None
    scheduler: str | None = None
    user: str | None = None
    queue: str | None = None
    attempt: int | None = None
    node_rank: int | None = None
    exit_code: int | None = None
    state: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    gpus: int | None = None
    image: str | None = None
    commit: str | None = None
    url: str | None = None
    labels: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Only what was given."""
        given = {known.name: getattr(self, known.name) for known in fields(self)}
        return {name: value for name, value in given.items() if value is not None and value != {}}


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file of a stored log. `sha256` is that of its uncompressed bytes, and the key under which they are kept."""

    name: str
    sha256: str
    bytes: int
    lines: int


@dataclass(frozen=True, slots=True)
class StoredLog:
    """The stored log of one incident. With several files, `sha256` is that of their digests and names."""

    sha256: str
    files: tuple[StoredFile, ...]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def lines(self) -> int:
        return sum(file.lines for file in self.files)

    def as_dict(self) -> dict[str, Any]:
        files = [{"name": f.name, "sha256": f.sha256, "bytes": f.bytes, "lines": f.lines} for f in self.files]
        return {"sha256": self.sha256, "bytes": self.bytes, "lines": self.lines, "files": files}


@dataclass(frozen=True, slots=True)
class StoredLine:
    """One line of a stored file, from 1; `cut` says that it goes on."""

    line: int
    text: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class GroupMark:
    """What an incident tells of its group."""

    id: str
    status: GroupStatus
    count: int


@dataclass(frozen=True, slots=True)
class Incident:
    """A stored log and what became of it. `failure` says why there is no verdict where `state` is failed."""

    id: str
    state: State
    received_at: datetime
    job: Job
    log: StoredLog
    verdict: dict[str, Any] | None = None
    group: GroupMark | None = None
    triaged_at: datetime | None = None
    failure: str | None = None

    def as_dict(self, base_url: str) -> dict[str, Any]:
        """The form that outsiders rely on; `url` is the incident's page."""
        group = self.group
        mark = {"id": group.id, "status": group.status.value, "count": group.count} if group else None
        return {
            "id": self.id,
            "url": f"{base_url}/incidents/{self.id}",
            "state": self.state.value,
            "failure": self.failure,
            "received_at": _iso(self.received_at),
            "triaged_at": _iso(self.triaged_at),
            "job": self.job.as_dict(),
            "group": mark,
            "verdict": self.verdict,
            "log": self.log.as_dict(),
            "gpu_hours_lost": None,
            "feedback": [],
        }


@dataclass(frozen=True, slots=True)
class Group:
    """Incidents of one fingerprint, or joined. `title` and `signature` are the latest incident's."""

    id: str
    status: GroupStatus
    count: int
    signature: str | None
    title: str | None
    entry: str | None
    outcome: str
    first_seen: datetime
    last_seen: datetime
    fingerprints: tuple[str, ...] = ()

    def as_dict(self, base_url: str) -> dict[str, Any]:
        return {
            "id": self.id,
            "url": f"{base_url}/groups/{self.id}",
            "status": self.status.value,
            "count": self.count,
            "signature": self.signature,
            "title": self.title,
            "entry": self.entry,
            "outcome": self.outcome,
            "first_seen": _iso(self.first_seen),
            "last_seen": _iso(self.last_seen),
            "fingerprints": list(self.fingerprints),
        }


@dataclass(frozen=True, slots=True)
class Finding:
    """What of a verdict is filtered, searched and grouped by."""

    outcome: str
    fingerprint: str | None
    signature: str | None
    entry: str | None
    title: str | None
    host: str | None
    text: str


@dataclass(frozen=True, slots=True)
class IncidentFilter:
    """Which incidents to list; None leaves a property open. `q` is words, all of which must be found."""

    q: str | None = None
    entry: str | None = None
    outcome: str | None = None
    cluster: str | None = None
    user: str | None = None
    host: str | None = None
    state: State | None = None
    group: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class GroupFilter:
    """Which groups to list; None leaves a property open."""

    status: GroupStatus | None = None
    entry: str | None = None
    outcome: str | None = None


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z") if moment else None
