"""What a draft would say of the stored incidents, as far as they were looked through."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class BackTestStage(StrEnum):
    """running → done, cancelled or broken."""

    NONE = "none"
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class ShownIn:
    """An incident that shows the draft's sign, and what its verdict is today; `entry` is None where none names it,
    `case` where no case of that answers, or that is unknown."""

    incident_id: str
    outcome: str
    entry: str | None
    case: str | None = None


@dataclass(frozen=True, slots=True)
class BackTest:
    """What a draft, as of `revision`, would change; `content` is a digest of its words then. The counts are of all:
    `explains` of failures without an entry (and of logs that showed none, but no good end either), `takes` of those
    that another entry names today, `alarms` of healthy runs, `beside` where the sign is there and the verdict stays. Of
    those whose entry stays, and which an added case would answer, `refines` counts those without a case that knows
    their message, `overrides` those that such a case answers today. The lists have the first of each. `changed` are the
    ids of all incidents but those of `beside`: whose verdict would name another cause, or answer it otherwise.
    """

    stage: BackTestStage = BackTestStage.NONE
    by: str = ""
    revision: int = 0
    total: int = 0
    looked_at: int = 0
    failed: int = 0
    seconds: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    explains: tuple[ShownIn, ...] = ()
    takes: tuple[ShownIn, ...] = ()
    refines: tuple[ShownIn, ...] = ()
    overrides: tuple[ShownIn, ...] = ()
    alarms: tuple[ShownIn, ...] = ()
    beside: tuple[ShownIn, ...] = ()
    changed: tuple[str, ...] = ()
    problem: str | None = None
    content: str = ""
