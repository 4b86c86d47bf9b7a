"""How good a decision was: the attempt that it was about and the next one in, right, wrong or unknown out."""

from __future__ import annotations

from torchtriage.domain.decision import AttemptRecord, Decision, Grade


def grade(decision: Decision, following: AttemptRecord) -> Grade:
    """-> what the next attempt of the job says of a decision, whoever made it and whether or not it was followed.

    A restart was right where the next attempt got further, and wrong where it failed of the same cause without. To stop
    or to wait was right where a restart would have been wrong, and the other way round. Another cause, without
    progress, tells nothing; nor does an attempt on a host that was to be left out.
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
