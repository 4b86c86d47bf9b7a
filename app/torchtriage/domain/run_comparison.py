"""Two runs side by side: what differs between one that worked, most often, and one that failed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class ChangeKind(StrEnum):
    """What sort of thing differs, in the order in which people look at it."""

    JOB = "job"  # what the sender said of the job: image, commit, queue
    VERSION = "version"  # of a package
    ENVIRONMENT = "environment"  # a variable of the command's environment
    LAUNCH = "launch"  # launcher, number of ranks, hosts
    SETTING = "setting"  # an option or a value of the configuration that the log prints
    TIMING = "timing"  # how long the start and a step took
    LINE = "line"  # a line of a form that the earlier run never printed


@dataclass(frozen=True, slots=True)
class Change:
    """`before` and `now` are what the two runs had, None where one had none. `line` is the line of the later run that
    says it, in `file` (None where the run is one file)."""

    kind: ChangeKind
    name: str
    before: str | None
    now: str | None
    line: int | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True)
class NewLine:
    """A line of the later run of a form that the earlier one never printed."""

    line: int
    text: str
    file: str | None = None


@dataclass(frozen=True, slots=True)
class RunComparison:
    """`same` counts the settings that are equal in both runs. `partly` is true where a log was so long that only its
    beginning and its end were compared."""

    changes: tuple[Change, ...] = ()
    new_lines: tuple[NewLine, ...] = ()
    same: int = 0
    partly: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
