"""What the client reports about a run at its end, so that later runs can be compared with one that worked."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from torchtriage.domain.run_comparison import Change


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The summary of a run. `job` is what is known about the job, by name; `versions` are those of the installed
    packages, by name; `environment` are the variables of the command, without secrets; `phases` are the seconds that
    each phase took; `lines` are the first lines of each form, masked, in the order of the log."""

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
    """The changes since the last run with the same job name that worked: `changes`, the most important first. `at` is
    when that run was received, and `incident` its id if its log is stored."""

    at: datetime
    incident: str | None
    changes: tuple[Change, ...]
