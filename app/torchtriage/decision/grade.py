"""Grades a decision as right, wrong or unknown, by comparing its attempt with the next one."""

from __future__ import annotations

from torchtriage.domain.decision import AttemptRecord, Decision, Grade


def grade(decision: Decision, following: AttemptRecord) -> Grade:
    """Returns what the next attempt of the job shows about a decision. It does not matter who made the decision or
    whether it was followed.

    A restart was right if the next attempt made progress, and wrong if it failed from the same cause without progress.
    Stopping or waiting was right if a restart would have been wrong, and wrong if it would have been right. Another
    cause without progress shows nothing, nor does an attempt on a host that should have been left out.
    """
    if decision.action == "restart-excluding" and following.host in decision.hosts:
        return "unknown"
    if following.outcome == "healthy" or _further(decision.attempt, following):
        went_on = True
    elif following.same_cause(decision.attempt):
        went_on = False
    else:
        return "unknown"
    return "right" if went_on == decision.restarts else "wrong"


def _further(before: AttemptRecord, after: AttemptRecord) -> bool:
    return after.step is not None and (before.step is None or after.step > before.step)
