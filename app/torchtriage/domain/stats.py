"""Counts over incidents, as outsiders read them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

Bucket = Literal["hour", "day"]


@dataclass(frozen=True, slots=True)
class StatsFilter:
    """Which incidents to count; None leaves a property open. `host` is what the names of hosts begin with."""

    since: datetime | None = None
    until: datetime | None = None
    cluster: str | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class Stat:
    """How many incidents of one value were received from `at` (ISO 8601, UTC) on, and what they cost."""

    at: str
    value: str | None
    count: int
    gpu_hours_lost: float | None


@dataclass(frozen=True, slots=True)
class HostRecord:
    """What failed first on one host, over all jobs; `hardware` counts what the host itself is to blame for. `jobs` and
    `entries`, how often which cause, are those of its latest `looked_at` failures."""

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
    """Verdicts of one entry, None where it names none, and outcome; `part` is the time or cluster that they are of."""

    part: str
    outcome: str
    entry: str | None
    count: int
    gpu_hours: float


@dataclass(frozen=True, slots=True)
class BadHost:
    """A host that was to blame itself for this many failures."""

    host: str
    hardware: int
    last_seen: datetime


@dataclass(frozen=True, slots=True)
class HostFailures:
    """Failures of a host of a cluster (None where that is not told), of which `hardware` were its own fault, beside
    `of_cluster` failures on `hosts` hosts of the cluster that runs failed on."""

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
    """A host that failed more often than chance allows: `chance` is the probability of as many failures or more, where
    each host of the cluster is equally likely to fail (the binomial test), times how many hosts were compared."""

    failures: HostFailures
    chance: float


@dataclass(frozen=True, slots=True)
class RetrySuccess:
    """What came of incidents whose advice was a retry, the latest first, `looked_at` at most.

    `same` and `other`: a later attempt of the job failed again, of the same entry or not. `healthy`: it ran well.
    `unknown`: nothing was heard of the job again, so it ran well, or nobody tried, or nobody told; or its log does not
    tell how it ended.
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
    """How often people said that verdicts that name an entry are right, and wrong; an entry of None named none."""

    entry: str | None
    right: int
    wrong: int

    @property
    def share(self) -> float:
        return self.right / (self.right + self.wrong)
