"""What the client tells of a run at its end, so that later runs can be compared with one that worked."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from torchtriage.domain.run_comparison import Change


@dataclass(frozen=True, slots=True)
class RunSummary:
    """`job` is what was told of the job, by name; `versions` are those of the packages that are installed, by name;
    `environment` the variables of the command, without secrets; `phases` the seconds that each took; `lines` the first
    lines of each form, masked, in the order in which they came."""

    job: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    phases: dict[str, float] = field(default_factory=dict)
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GoodRun:
    """The summary of a run that ended well, and when it was received."""

    at: datetime
    summary: RunSummary


@dataclass(frozen=True, slots=True)
class SinceGood:
    """What changed since the last run of the same job name that worked: `changes`, the likeliest to matter first; `at`
    is when that run was received, `incident` its id where its log is stored."""

    at: datetime
    incident: str | None
    changes: tuple[Change, ...]
