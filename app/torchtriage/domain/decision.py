"""What to do about a failed attempt of a job: the decision, the facts behind it, and its grade."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from torchtriage.domain.verdict import Evidence, Reason

DecisionAction = Literal["stop", "restart", "restart-excluding", "restart-from-checkpoint", "wait"]
ACTIONS: tuple[DecisionAction, ...] = get_args(DecisionAction)
Grade = Literal["right", "wrong", "unknown"]
DecisionMode = Literal["dry-run", "enforce"]


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """What is known about one attempt of a job. Unknown values are None.

    `attempt` counts from 0. `outcome` is the verdict's outcome, or `unknown`. `entry` and `fingerprint` name the cause.
    `step` is the last step in the attempt's log. `host` and `rank` failed first.
    """

    attempt: int
    outcome: str = "unknown"
    entry: str | None = None
    fingerprint: str | None = None
    step: int | None = None
    host: str | None = None
    rank: int | None = None

    def same_cause(self, other: AttemptRecord) -> bool:
        """Returns whether both attempts are known to have failed from the same cause."""
        if self.fingerprint and other.fingerprint:
            return self.fingerprint == other.fingerprint
        return self.entry is not None and self.entry == other.entry


@dataclass(frozen=True, slots=True)
class Budget:
    """The number of restarts that are left after this decision: `job` in total, `cause` after this cause without
    progress in between, and `progress` for any cause without progress in between."""

    job: int
    progress: int
    cause: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do about an attempt.

    `rule` is the rule of the policy that decided, and `because` is its reason, independent of the language.
    `confidence` is that of the verdict, or None if no cause is named. The next attempt should leave out `hosts`, can
    start from `checkpoint`, and should start after `delay_seconds`. `policy` names the file with the rules.
    """

    action: DecisionAction
    rule: str
    because: Reason
    confidence: str | None
    attempt: AttemptRecord
    budget: Budget
    hosts: tuple[str, ...] = ()
    checkpoint: str | None = None
    delay_seconds: int = 0
    evidence: tuple[Evidence, ...] = ()
    policy: str = "default"

    @property
    def restarts(self) -> bool:
        return self.action not in ("stop", "wait")


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """A stored decision. `mode` is `dry-run` if nobody is asked to act on it. `grade` is None until the next attempt is
    known; `graded_by` is the incident of that attempt."""

    id: str
    at: datetime
    by: str
    mode: DecisionMode
    decision: Decision
    incident: str | None = None
    job_id: str | None = None
    cluster: str | None = None
    grade: Grade | None = None
    graded_at: datetime | None = None
    graded_by: str | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """How many decisions with one action were right or wrong. `waiting` counts those without a next attempt so far."""

    action: DecisionAction
    right: int = 0
    wrong: int = 0
    unknown: int = 0
    waiting: int = 0

    @property
    def count(self) -> int:
        return self.right + self.wrong + self.unknown + self.waiting

    @property
    def share(self) -> float | None:
        """The share of right decisions among those that are right or wrong, or None if there are none."""
        judged = self.right + self.wrong
        return self.right / judged if judged else None
