"""What the dashboard shows about a range of time and some clusters: as data for charts, as JSON and as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

from torchtriage.domain.json_form import fields_form
from torchtriage.domain.stats import BadHost, Precision, RetrySuccess, UnlikelyHost

OTHERS = "others"  # the name of all parts that are too small to be drawn separately
UNKNOWN = "unknown"  # the name of failures that no entry names


@dataclass(frozen=True, slots=True)
class Range:
    """A range of whole days in UTC, both ends included."""

    first: date
    last: date

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1


@dataclass(frozen=True, slots=True)
class Chart:
    """Counts over time, split into parts. `counts[part][i]` belongs to the i-th of `times`, which are days or months.
    The largest part comes first. `rest` are the parts that OTHERS stands for."""

    times: tuple[str, ...]
    counts: dict[str, tuple[int, ...]]
    rest: tuple[str, ...] = ()

    @property
    def totals(self) -> tuple[int, ...]:
        return tuple(map(sum, zip(*self.counts.values(), strict=True))) if self.counts else (0,) * len(self.times)


@dataclass(frozen=True, slots=True)
class Cost:
    """The failures of one cause or cluster, and the GPU hours lost to them. `name` is None if the cause or cluster is
    unknown."""

    name: str | None
    count: int
    gpu_hours_lost: float


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    """The failures of a cluster, and the average hours between two failures: for all failures and for hardware
    failures. Each is None if there are no such failures."""

    cluster: str | None
    count: int
    hardware: int
    hours_between: float | None
    hours_between_hardware: float | None
    gpu_hours_lost: float


@dataclass(frozen=True, slots=True)
class Before:
    """The same number of days before the range, if incidents are known for all of it: failures, GPU hours, and failures
    by cause."""

    range: Range
    count: int
    gpu_hours_lost: float
    causes: dict[str | None, int]


@dataclass(frozen=True, slots=True)
class Dashboard:
    """The content of the dashboard. `hours` is the length of the range, without the time before the first incident and
    after now. `before` is None if the first incident is later. `compared` is the number of hosts that were tested for
    an unlikely number of failures."""

    range: Range
    cluster: str | None
    hours: float
    count: int
    gpu_hours_lost: float
    by_area: Chart
    by_owner: Chart
    causes: tuple[Cost, ...]
    clusters: tuple[ClusterRecord, ...]
    bad_hosts: tuple[BadHost, ...]
    retries: RetrySuccess
    precision: tuple[Precision, ...]
    before: Before | None = None
    unlikely_hosts: tuple[UnlikelyHost, ...] = ()
    compared: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The public JSON form."""
        return {
            "since": self.range.first.isoformat(),
            "until": self.range.last.isoformat(),
            "cluster": self.cluster,
            "count": self.count,
            "gpu_hours_lost": self.gpu_hours_lost,
            "retries": fields_form(self.retries) | {"unknown": self.retries.unknown},
        } | {name: [dict(zip(rows[0], row, strict=True)) for row in rows[1:]] for name, rows in self.tables().items()}

    def tables(self) -> dict[str, list[list[Any]]]:
        """Returns each table that the page shows, by name. The first row has the column names."""
        costs = [(cost.name, cost.count, cost.gpu_hours_lost) for cost in self.causes]
        hosts = [(bad.host, bad.hardware, bad.last_seen.isoformat()) for bad in self.bad_hosts]
        unlikely = [
            (one.failures.host, one.failures.cluster, one.failures.count, round(one.failures.expected, 2), one.chance)
            for one in self.unlikely_hosts
        ]
        said = [(one.entry, one.right, one.wrong) for one in self.precision]
        return {
            "by_area": list(_chart(self.by_area)),
            "by_owner": list(_chart(self.by_owner)),
            "causes": _rows(("entry", "count", "gpu_hours_lost"), costs),
            "clusters": _rows(ClusterRecord.__slots__, (fields_form(row).values() for row in self.clusters)),
            "hosts": _rows(("host", "hardware", "last_seen"), hosts),
            "unlikely_hosts": _rows(("host", "cluster", "count", "expected", "chance"), unlikely),
            "precision": _rows(("entry", "right", "wrong"), said),
        }


def _chart(chart: Chart) -> Iterator[list[Any]]:
    yield ["time", *chart.counts]
    for at, time in enumerate(chart.times):
        yield [time, *(counts[at] for counts in chart.counts.values())]


def _rows(names: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[list[Any]]:
    return [list(names), *(list(row) for row in rows)]
