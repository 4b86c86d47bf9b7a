"""The differences between two runs: usually one that worked and one that failed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class ChangeKind(StrEnum):
    """The kind of difference, in the order in which people check it."""

    JOB = "job"  # what the sender said about the job: image, commit, queue
    VERSION = "version"  # version of a package
    ENVIRONMENT = "environment"  # a variable of the command's environment
    LAUNCH = "launch"  # launcher, number of ranks, hosts
    SETTING = "setting"  # an option or configuration value that the log prints
    TIMING = "timing"  # the time that the start and a step took
    LINE = "line"  # a line whose form does not occur in the earlier run


@dataclass(frozen=True, slots=True)
class Change:
    """A difference. `before` and `now` are the values of the two runs, or None if one had no value. `line` is the line
    of the later run that shows it, in `file` (None if the run is one file)."""

    kind: ChangeKind
    name: str
    before: str | None
    now: str | None
    line: int | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True)
class NewLine:
    """A line of the later run whose form does not occur in the earlier one."""

    line: int
    text: str
    file: str | None = None


@dataclass(frozen=True, slots=True)
class RunComparison:
    """The result of a comparison. `same` counts the settings that are equal in both runs. `partly` is True if a log was
    so long that only its start and its end were compared."""

    changes: tuple[Change, ...] = ()
    new_lines: tuple[NewLine, ...] = ()
    same: int = 0
    partly: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
