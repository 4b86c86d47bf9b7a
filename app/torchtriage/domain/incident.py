"""Incidents: a stored log with its verdict, and what is known about the job that wrote it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from torchtriage.domain.group import GroupMark
from torchtriage.domain.json_form import fields_form, json_form
from torchtriage.domain.verdict import RootCause, Verdict

FeedbackVerdict = Literal["right", "wrong"]


class State(StrEnum):
    """The states of an incident: received, triaging, then triaged or failed."""

    RECEIVED = "received"
    TRIAGING = "triaging"
    TRIAGED = "triaged"
    FAILED = "failed"

    @property
    def final(self) -> bool:
        return self in (State.TRIAGED, State.FAILED)


@dataclass(frozen=True, slots=True)
class NodeReport:
    """The part of an incident that one node of its run sent: the digest of its log, the host, how many of the
    incident's files it sent, and whether it sent them before the run ended."""

    log: str
    host: str | None = None
    files: int = 0
    provisional: bool | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """The job that failed and its owner, as the sender of the log gave them. Unknown values are None.

    `provisional` means that the job was still running when its log was sent. It is False for a report that replaces
    such a log. `nodes` is how many nodes send their own reports; `reports` are the reports received, by rank or host,
    if there are several.
    """

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
    provisional: bool | None = None
    nodes: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    reports: dict[str, NodeReport] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.reports:  # as they are stored
            known: dict[str, Any] = dict(self.reports)
            read = {node: NodeReport(**one) if isinstance(one, dict) else one for node, one in known.items()}
            object.__setattr__(self, "reports", read)

    def to_json(self) -> dict[str, Any]:
        """Only the values that were given."""
        given = ((name, getattr(self, name)) for name in self.__slots__)
        return {name: json_form(value) for name, value in given if value is not None and value != {}}

    @property
    def host_label(self) -> str | None:
        """The host that the sender names."""
        return self.labels.get("host")

    @property
    def node_key(self) -> str | None:
        """What distinguishes this report from those of other nodes of the same run, or None if it is about the whole
        run."""
        if not self.job_id or (self.nodes or 0) < 2:
            return None
        return str(self.node_rank) if self.node_rank is not None else self.host_label

    @property
    def reported_nodes(self) -> int:
        """How many of `nodes` have reported."""
        return len(self.reports) or 1

    @property
    def awaits_nodes(self) -> bool:
        """Whether nodes of the run have not reported yet."""
        return (bool(self.reports) or self.node_key is not None) and self.reported_nodes < (self.nodes or 0)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file of a stored log. `sha256` is the digest of its uncompressed bytes, and the key under which they are
    stored."""

    name: str
    sha256: str
    bytes: int
    lines: int


@dataclass(frozen=True, slots=True)
class StoredLog:
    """The stored log of one incident. If it has several files, `sha256` is the digest of their digests and names."""

    sha256: str
    files: tuple[StoredFile, ...]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def lines(self) -> int:
        return sum(file.lines for file in self.files)

    def to_json(self) -> dict[str, Any]:
        return fields_form(self) | {"bytes": self.bytes, "lines": self.lines}


@dataclass(frozen=True, slots=True)
class StoredLine:
    """One line of a stored file, counted from 1. `cut` means that the line is longer."""

    line: int
    text: str
    cut: bool = field(default=False, metadata={"description": "The line goes on, but is too long to be shown whole"})


@dataclass(frozen=True, slots=True)
class Feedback:
    """What somebody said about a verdict. `entry` is the correct entry, if they know it."""

    verdict: FeedbackVerdict
    by: str
    at: datetime
    entry: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Incident:
    """A stored log and what became of it. `failure` says why there is no verdict if `state` is failed."""

    id: str
    state: State
    received_at: datetime
    job: Job
    log: StoredLog
    verdict: Verdict | None = None
    group: GroupMark | None = None
    triaged_at: datetime | None = None
    failure: str | None = None
    gpu_hours_lost: float | None = None
    feedback: tuple[Feedback, ...] = ()

    @property
    def root_cause(self) -> RootCause | None:
        return self.verdict.root_cause if self.verdict else None

    @property
    def entry(self) -> str | None:
        """The entry that names its root cause."""
        return self.root_cause.entry if self.root_cause else None

    def as_dict(self, base_url: str) -> dict[str, Any]:
        """The public JSON form. `url` is the incident's page."""
        return {"id": self.id, "url": f"{base_url}/incidents/{self.id}"} | fields_form(self)


@dataclass(frozen=True, slots=True)
class VerdictSummary:
    """The parts of a verdict by which incidents are filtered, searched and grouped."""

    outcome: str
    fingerprint: str | None
    signature: str | None
    entry: str | None
    title: str | None
    host: str | None
    text: str
    hardware: bool = False  # the next attempt must leave out the host
    gpu_hours: float | None = None
    case: str = ""  # the case of the entry that answers, or empty


@dataclass(frozen=True, slots=True)
class VerdictKey:
    """What distinguishes two verdicts. If they differ in the first three values, they name different causes. If they
    differ only in `case`, they name the same cause with different answers. `case` is empty if no case of the entry
    answers, and None if it is unknown, because a release without cases gave the verdict."""

    outcome: str
    entry: str | None
    fingerprint: str | None
    case: str | None = None

    def names_cause_of(self, other: VerdictKey) -> bool:
        """Returns whether both name the same cause, even with different answers."""
        return (self.outcome, self.entry, self.fingerprint) == (other.outcome, other.entry, other.fingerprint)

    def says_same_as(self, other: VerdictKey) -> bool:
        """Returns whether both name the same cause and give the same answer, as far as this is known."""
        return self.names_cause_of(other) and (None in (self.case, other.case) or self.case == other.case)


@dataclass(frozen=True, slots=True)
class IncidentFilter:
    """Which incidents to list. None means any value. All words in `q` must be found.

    `label` is `key:value`. `retry` is an advice of Action, or `any` for all that mean a retry. `feedback` is what
    somebody said about the verdict. `owner` is who must act, by the cause, and `area` is one or more areas of entries,
    separated by commas; for both, `unknown` means failures that no entry names. `failed` leaves out logs that show no
    failure. `entries` are the entries of the owner; code that has the knowledge base fills them in.
    """

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
    queue: str | None = None
    image: str | None = None
    label: str | None = None
    retry: str | None = None
    owner: str | None = None
    area: str | None = None
    feedback: str | None = None
    failed: bool = False
    entries: frozenset[str] | None = None
