"""What to do about a failed attempt of a job: the decision, what it rests on, and how good it turned out to be."""

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
    """What is known of one attempt of a job; None where it is not known.

    `attempt` counts from 0. `outcome` is the verdict's, or `unknown`. `entry` and `fingerprint` name the cause. `step`
    is the last step that the attempt's log shows. `host` and `rank` failed first.
    """

    attempt: int
    outcome: str = "unknown"
    entry: str | None = None
    fingerprint: str | None = None
    step: int | None = None
    host: str | None = None
    rank: int | None = None

    def same_cause(self, other: AttemptRecord) -> bool:
        """-> whether both are known to have failed of one cause."""
        if self.fingerprint and other.fingerprint:
            return self.fingerprint == other.fingerprint
        return self.entry is not None and self.entry == other.entry


@dataclass(frozen=True, slots=True)
class Budget:
    """Restarts that are left after this decision: `job`, of the job in all; `cause`, after this cause without progress
    in between; `progress`, of the job without progress in between."""

    job: int
    progress: int
    cause: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do about an attempt.

    `rule` is the rule of the policy that decided, `because` its sentence for any language. `confidence` is that of the
    verdict that it rests on, None where no cause is named. `hosts` are to be left out of the next attempt,
    `checkpoint` is where it can start from, `delay_seconds` how long to wait before it. `policy` names the file that
    the rules came from.
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
    """A decision as it is kept. `mode` is `dry-run` where nobody is asked to act on it. `grade` is None until the next
    attempt is known, which is `graded_by`, an incident."""

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
    """How decisions of one action turned out: `waiting` is how many have no next attempt yet."""

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
        """The share of right ones among those that are right or wrong; None without any."""
        judged = self.right + self.wrong
        return self.right / judged if judged else None
