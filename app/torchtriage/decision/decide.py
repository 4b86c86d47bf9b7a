"""Computes the decision about an attempt from a policy and the earlier attempts. It reads no clock and no settings.

The rules are applied in the order of RULES, and the first one that returns a decision is used. Only two rules stop a
job, and both require a certain cause: stopping a job that would have continued costs more than one more restart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

from torchtriage.decision.failure import Failure
from torchtriage.decision.policy import CauseRule, Policy
from torchtriage.domain.decision import AttemptRecord, Budget, Decision, DecisionAction
from torchtriage.domain.verdict import FAILED, Reason


def decide(policy: Policy, failure: Failure, history: Sequence[AttemptRecord] = ()) -> Decision:
    """Returns what to do about an attempt. `history` are the known earlier attempts of the same job, in any order;
    records that are not earlier are ignored."""
    case = _Case(policy, failure, history)
    return next(found for rule in RULES if (found := rule(case)) is not None)


class _Case:
    """The attempt and its history, with the values that the rules use."""

    def __init__(self, policy: Policy, failure: Failure, history: Sequence[AttemptRecord]) -> None:
        now = failure.record
        by_number = {known.attempt: known for known in history if known.attempt < now.attempt}
        self.policy, self.failure, self.now = policy, failure, now
        self.earlier = [by_number[number] for number in sorted(by_number)]

    @cached_property
    def cause(self) -> CauseRule:
        return self.policy.cause(self.now.entry)

    @cached_property
    def at_same_step(self) -> list[AttemptRecord]:
        """The attempts that failed from this cause at this step, including this one as the last."""
        same = [one for one in self.earlier if one.same_cause(self.now) and one.step == self.now.step]
        return [*same, self.now] if self.now.step is not None else [self.now]

    @cached_property
    def _in_vain(self) -> list[AttemptRecord]:
        """The earlier attempts after which the job made no progress. If a step is not known, the attempt counts as
        without progress."""
        attempts = [*self.earlier, self.now]
        furthest, found = -1, []
        for one, following in pairwise(attempts):
            furthest = max(furthest, -1 if one.step is None else one.step)
            if following.step is None or following.step <= furthest:
                found.append(one)
        return found

    @cached_property
    def in_vain_of_cause(self) -> int:
        """How often this cause prevented progress. If the failure is unexplained, every attempt without progress
        counts."""
        return sum(not self.failure.explained or one.same_cause(self.now) for one in self._in_vain)

    @cached_property
    def retries(self) -> int:
        """How often a job may be retried after this cause without progress."""
        if self.cause.retries is not None:
            return self.cause.retries
        if not self.failure.explained:
            return self.policy.retries["unexplained"]
        nothing = self.failure.retry == "no" and self.failure.advice == "none"  # an entry that is no failure by itself
        return 0 if nothing else self.policy.retries[self.failure.retry]

    @cached_property
    def budget(self) -> Budget:
        """The restarts that are left before this decision. An attempt about which nothing is known counts as one
        without progress."""
        unknown = self.now.attempt - len(self.earlier)
        return Budget(
            job=max(0, self.policy.restarts - self.now.attempt),
            progress=max(0, self.policy.restarts_without_progress - len(self._in_vain) - unknown),
            cause=max(0, self.retries - self.in_vain_of_cause),
        )

    @cached_property
    def repeated_hosts(self) -> list[str]:
        """The hosts on which too many attempts failed first. Causes that must be fixed in the job do not count against
        a host, and a run on a single host does not either."""
        if self.failure.advice == "fix-first" or not self.failure.several_hosts:
            return []
        failed = [one for one in [*self.earlier, self.now] if one.outcome in FAILED and one.host]
        counted = Counter(one.host for one in failed if one.host)
        return [host for host, count in counted.items() if count >= self.policy.exclude_after]

    def decided(self, action: DecisionAction, rule: str, **values: str | int | None) -> Decision:
        restarts = action not in ("stop", "wait")
        left = self.budget
        if restarts:
            left = Budget(max(0, left.job - 1), max(0, left.progress - 1), max(0, left.cause - 1))
        delays = self.cause.delay_seconds or self.policy.delay_seconds
        return Decision(
            action,
            rule,
            Reason(rule, {"entry": self.now.entry, **values}),
            self.failure.confidence,
            self.now,
            left,
            delay_seconds=delays[min(self.in_vain_of_cause, len(delays) - 1)] if restarts else 0,
            evidence=self.failure.evidence,
            policy=self.policy.name,
        )


def _not_failed(case: _Case) -> Decision | None:
    if case.failure.failed:
        return None
    return case.decided("wait", "not-failed" if case.now.outcome == "healthy" else "not-known")


def _left_to_people(case: _Case) -> Decision | None:
    return case.decided("wait", "left-to-people") if case.cause.wait else None


def _fix_first(case: _Case) -> Decision | None:
    """Stops if the failure will repeat until it is fixed."""
    if case.failure.certain and case.failure.advice == "fix-first" and case.failure.retry == "no":
        return case.decided("stop", "fix-first")
    return None


def _same_step(case: _Case) -> Decision | None:
    """Stops if the failure came back at the same step, unless its entry or the hosts suggest that this is chance."""
    again, failure = case.at_same_step, case.failure
    if len(again) < case.policy.same_step or not failure.certain or failure.retry == "yes":
        return None
    if failure.advice != "fix-first" and not _follows_the_job(again):
        return None
    return case.decided("stop", "same-step", step=case.now.step, count=len(again))


def _follows_the_job(attempts: Sequence[AttemptRecord]) -> bool:
    """Returns whether a failure follows the job: the same rank each time, but not the same host. Logs print only some
    steps, so equal steps alone can be chance."""
    ranks, hosts = {one.rank for one in attempts}, {one.host for one in attempts}
    return len(ranks) == 1 and None not in ranks and len(hosts) > 1 and None not in hosts


def _restarts_used(case: _Case) -> Decision | None:
    if case.budget.job == 0:
        return case.decided("wait", "restarts-used", count=case.policy.restarts)
    if case.budget.progress == 0:
        return case.decided("wait", "no-progress", count=case.policy.restarts_without_progress)
    return None


def _host_again(case: _Case) -> Decision | None:
    """Leaves out a host on which attempts failed first again and again. A different host is a new chance, even after
    other retries."""
    if case.now.host not in case.repeated_hosts:
        return None
    return _excluding(case, "host-again", case.repeated_hosts)


def _retries_used(case: _Case) -> Decision | None:
    if case.retries == 0:
        return case.decided("wait", "no-retry")
    if case.budget.cause == 0:
        return case.decided("wait", "retries-used", count=case.in_vain_of_cause)
    return None


def _host_at_fault(case: _Case) -> Decision | None:
    if case.failure.advice != "retry-elsewhere" or not case.failure.hosts:
        return None
    return _excluding(case, "host-at-fault", [*case.failure.hosts, *case.repeated_hosts])


def _excluding(case: _Case, rule: str, hosts: Sequence[str]) -> Decision:
    named = tuple(dict.fromkeys(hosts))
    shown = ", ".join(named[:10])
    if len(named) > case.policy.most_hosts:
        return case.decided("wait", "many-hosts", hosts=shown, count=len(named), most=case.policy.most_hosts)
    made = case.decided("restart-excluding", rule, hosts=shown, count=case.policy.exclude_after)
    return replace(made, hosts=named, checkpoint=case.failure.checkpoint)


def _restart(case: _Case) -> Decision:
    checkpoint = case.failure.checkpoint
    if not case.failure.explained:
        rule = "unexplained"
    elif case.failure.retry == "yes":
        rule = "transient"
    else:
        rule = "try-once" if case.failure.retry == "once" else "not-certain"
    made = case.decided("restart-from-checkpoint" if checkpoint else "restart", rule)
    return replace(made, checkpoint=checkpoint)


RULES: tuple[Callable[[_Case], Decision | None], ...] = (
    _not_failed,  # nothing is decided if nothing failed
    _left_to_people,  # the policy says so
    _fix_first,  # before budgets, because a certain cause needs none
    _same_step,
    _restarts_used,  # limits the number of restarts
    _host_again,
    _retries_used,
    _host_at_fault,
    _restart,
)
