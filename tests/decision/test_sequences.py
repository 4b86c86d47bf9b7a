"""The default policy on made jobs: it stops none that would have gone on, and grades itself as the world does."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from tests.decision.worlds import HOSTS, STEPS, Job, made
from torchtriage.decision.decide import decide
from torchtriage.decision.failure import Failure
from torchtriage.decision.grade import grade
from torchtriage.decision.policy import load_policy
from torchtriage.domain.decision import AttemptRecord, Decision

SEQUENCES = 1700
_MAX_COUNT = 200  # attempts; far more than any policy allows


@dataclass
class Played:
    """One job from its first attempt to the end of its restarts. `after` is what one more attempt came to."""

    job: Job
    attempts: list[Failure] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    ended_well: bool = False
    after: Failure | None = None


def play(seed: int) -> Played:
    """Returns the job as it goes when its decisions are taken; once it is stopped or waits, one more attempt is made."""
    policy, played = load_policy(), Played(made(seed))
    while len(played.attempts) < _MAX_COUNT:
        failed = played.job.attempt()
        if failed is None:
            played.ended_well = True
            return played
        history = [one.record for one in played.attempts]
        played.attempts.append(failed)
        decided = decide(policy, failed, history)
        played.decisions.append(decided)
        played.job.excluded |= set(decided.hosts)
        if not decided.restarts:
            played.after = played.job.attempt()
            return played
    raise AssertionError(f"{played.job.kind}: restarted for ever")


@pytest.fixture(scope="module")
def all_played() -> list[Played]:
    return [play(seed) for seed in range(SEQUENCES)]


def furthest(attempts: list[Failure]) -> int:
    return max((one.record.step or 0 for one in attempts), default=0)


def went_on(played: Played) -> bool:
    """Returns whether the attempt after the last decision got further than all before."""
    return played.after is None or (played.after.record.step or 0) > furthest(played.attempts)


@pytest.mark.slow
def test_no_job_is_stopped_that_would_have_gone_on(all_played: list[Played]) -> None:
    stopped = [one for one in all_played if one.decisions and one.decisions[-1].action == "stop"]
    assert len(stopped) >= 400
    assert [(one.job.kind, one.decisions[-1]) for one in stopped if went_on(one)] == []


def test_only_certain_causes_stop_a_job(all_played: list[Played]) -> None:
    every = [decision for one in all_played for decision in one.decisions]
    assert {decision.confidence for decision in every if decision.action == "stop"} == {"certain"}


@pytest.mark.parametrize(
    ("kind", "last", "most"),
    [
        ("bug", "stop", 1), ("out of memory", "stop", 1), ("bad sample", "stop", 2), ("likely bug", "wait", 2),
        ("unexplained bug", "wait", 2), ("hang at a sample", "stop", 5),
    ],
)  # fmt: skip
def test_a_job_that_always_fails_ends_after_few_attempts(
    all_played: list[Played], kind: str, last: str, most: int
) -> None:
    of_kind = [one for one in all_played if one.job.kind == kind]
    assert {one.decisions[-1].action for one in of_kind} == {last}
    assert max(len(one.attempts) for one in of_kind) <= most


@pytest.mark.parametrize("kind", ["broken host", "first on a host", "same step on a host"])
def test_a_broken_host_is_left_out_and_the_job_ends_well(all_played: list[Played], kind: str) -> None:
    of_kind = [one for one in all_played if one.job.kind == kind]
    well = [one for one in of_kind if one.ended_well]
    assert len(well) == len(of_kind)
    assert all(len(one.job.excluded) == 1 and one.job.excluded <= set(HOSTS) for one in well)
    assert {one.decisions[-1].action for one in well} == {"restart-excluding"}


def test_a_job_survives_temporary_outages(all_played: list[Played]) -> None:
    outages = [one for one in all_played if one.job.kind == "outage"]
    assert all(one.ended_well for one in outages)
    preempted = [one for one in all_played if one.job.kind == "preempted"]
    held = {one.decisions[-1].rule for one in preempted if not one.ended_well}
    assert held <= {"retries-used", "no-progress"}  # a job that is preempted before each checkpoint gets nowhere
    assert sum(one.ended_well for one in preempted) > 0.8 * len(preempted)
    assert all(one.job.at == STEPS for one in all_played if one.ended_well)


def test_decisions_are_graded_as_the_world_would(all_played: list[Played]) -> None:
    """By construction: a restart is right where the job got further. What a grade does not tell is `unknown`."""
    told: dict[str, Counter[str]] = defaultdict(Counter)
    for one in all_played:
        for at, decision in enumerate(one.decisions):
            later = one.attempts[at + 1] if at + 1 < len(one.attempts) else one.after
            record = later.record if later else AttemptRecord(at + 1, "healthy")
            further = record.outcome == "healthy" or (
                record.step is not None and record.step > (one.attempts[at].record.step or 0)
            )
            given = grade(decision, record)
            told[decision.action][given] += 1
            if given != "unknown":
                assert (given == "right") == (further == decision.restarts), (one.job.kind, decision)
    assert told["stop"]["wrong"] == 0
    assert told["stop"]["right"] >= 400
    assert sum(counted.total() for counted in told.values()) > 2000
    assert told["wait"]["right"] > 2 * told["wait"]["wrong"]
    assert told["restart-excluding"]["right"] > 20 * told["restart-excluding"]["wrong"]


def test_the_budget_never_grows_without_progress(all_played: list[Played]) -> None:
    for one in all_played:
        for before, after in pairwise(one.decisions):
            assert after.budget.job < before.budget.job or not after.restarts
