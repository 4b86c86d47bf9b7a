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
    """An incident that shows the draft's sign, and what its verdict is today; `entry` is None where none names it."""

    incident_id: str
    outcome: str
    entry: str | None


@dataclass(frozen=True, slots=True)
class BackTest:
    """What a draft, as of `revision`, would change. The counts are of all: `explains` of failures without an entry (and
    of logs that showed none, but no good end either), `takes` of those that another entry names today, `alarms` of
    healthy runs, `refines` of those whose entry stays and whose answer an added case would give, `beside` where the
    sign is there and the verdict stays. The lists have the first of each. `changed` are the ids of all incidents of
    the first three: whose verdict would name another cause.
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
    alarms: tuple[ShownIn, ...] = ()
    beside: tuple[ShownIn, ...] = ()
    changed: tuple[str, ...] = ()
    problem: str | None = None
