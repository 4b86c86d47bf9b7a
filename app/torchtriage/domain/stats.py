"""Public counts over incidents."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

Bucket = Literal["hour", "day"]


@dataclass(frozen=True, slots=True)
class StatsFilter:
    """Which incidents to count. None means any value. `host` is the beginning of a host's name."""

    since: datetime | None = None
    until: datetime | None = None
    cluster: str | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class Stat:
    """How many incidents with one value were received from `at` (ISO 8601, UTC) on, and their cost."""

    at: str
    value: str | None
    count: int
    gpu_hours_lost: float | None


@dataclass(frozen=True, slots=True)
class HostRecord:
    """The first failures of all jobs on one host. `hardware` counts those that the host itself caused. `jobs`, and
    `entries` with their counts, are from its latest `looked_at` failures."""

    host: str
    count: int
    hardware: int
    jobs: int
    first_seen: datetime
    last_seen: datetime
    gpu_hours_lost: float | None
    entries: dict[str, int] = field(default_factory=dict)
    looked_at: int = 0


@dataclass(frozen=True, slots=True)
class Total:
    """The number of verdicts with one entry (None if no entry) and outcome. `part` is their time or cluster."""

    part: str
    outcome: str
    entry: str | None
    count: int
    gpu_hours: float


@dataclass(frozen=True, slots=True)
class BadHost:
    """A host with the number of failures that it caused itself."""

    host: str
    hardware: int
    last_seen: datetime


@dataclass(frozen=True, slots=True)
class HostFailures:
    """The failures of a host in a cluster (None if unknown). The host itself caused `hardware` of them. The cluster had
    `of_cluster` failures on `hosts` hosts."""

    host: str
    cluster: str | None
    count: int
    hardware: int
    of_cluster: int
    hosts: int

    @property
    def expected(self) -> float:
        """The failures expected if all hosts of the cluster fail equally often."""
        return self.of_cluster / self.hosts


@dataclass(frozen=True, slots=True)
class UnlikelyHost:
    """A host that failed more often than chance allows. `chance` is the probability of at least as many failures if
    each host of the cluster is equally likely to fail (the binomial test), times the number of hosts compared."""

    failures: HostFailures
    chance: float


@dataclass(frozen=True, slots=True)
class RetrySuccess:
    """What happened after incidents whose advice was a retry: the latest `looked_at` incidents at most.

    `same` and `other`: a later attempt of the job failed with the same entry or another one. `healthy`: it ran well.
    `unknown`: no later attempt was received, or its log does not show how it ended.
    """

    looked_at: int = 0
    healthy: int = 0
    same: int = 0
    other: int = 0

    @property
    def heard(self) -> int:
        return self.healthy + self.same + self.other

    @property
    def unknown(self) -> int:
        return self.looked_at - self.heard


@dataclass(frozen=True, slots=True)
class Precision:
    """How often people said that the verdicts with an entry are right or wrong. If `entry` is None, the verdicts named
    no entry."""

    entry: str | None
    right: int
    wrong: int

    @property
    def share(self) -> float:
        return self.right / (self.right + self.wrong)
