"""The verdicts that a draft would change among the stored incidents that were checked so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class BackTestStage(StrEnum):
    """The states of a back test: first running, then done, cancelled or broken."""

    NONE = "none"
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class ShownIn:
    """An incident that matches the draft's sign, with its current verdict. `entry` is None if no entry names the cause.
    `case` is None if no case of the entry answers, or if the case is unknown."""

    incident_id: str
    outcome: str
    entry: str | None
    case: str | None = None


@dataclass(frozen=True, slots=True)
class BackTest:
    """What a draft at `revision` would change. `content` is a digest of its text at that time.

    The counts cover all incidents that match the sign. `explains`: failures without an entry, and logs that show
    neither a failure nor a good end. `takes`: failures that another entry names now. `alarms`: healthy runs. `beside`:
    the verdict stays. If a draft only adds a case, the entry stays too: `refines` counts those that no case with a
    known message answers, and `overrides` those that such a case answers now. Each list has the first incidents of its
    kind. `changed` has the ids of all incidents except `beside`.
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
