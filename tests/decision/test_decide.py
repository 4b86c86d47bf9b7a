from __future__ import annotations

from dataclasses import replace

import pytest

from torchtriage.decision import wording
from torchtriage.decision.decide import decide
from torchtriage.decision.failure import Failure, failure_of
from torchtriage.decision.grade import grade
from torchtriage.decision.policy import load_policy
from torchtriage.decision.wording import decision_json, reason, what
from torchtriage.domain.decision import AttemptRecord, Budget, Decision
from torchtriage.domain.json_form import fields_form, from_json_form
from torchtriage.domain.verdict import Action, Checkpoint, Evidence, RootCause, RunFacts, Stats, Verdict

POLICY = load_policy()


def failed(
    entry: str | None = "nccl.timeout", retry: str = "once", advice: str = "retry", attempt: int = 0, step: int | None = 100,
    confidence: str = "certain", host: str | None = None, rank: int | None = None, hosts: tuple[str, ...] = (),
    checkpoint: str | None = None, outcome: str = "explained",
) -> Failure:  # fmt: skip
    record = AttemptRecord(attempt, outcome, entry, f"v1:{entry}", step, host, rank)
    return Failure(record, True, confidence if entry else None, retry, advice, hosts, checkpoint, several_hosts=True)


def before(failure: Failure, *attempts: int, **other: object) -> list[AttemptRecord]:
    """Returns earlier attempts that were alike but for their numbers and `other`."""
    return [replace(failure.record, attempt=attempt, **other) for attempt in attempts]  # type: ignore[arg-type]


DECISIONS = {
    "not-failed": decide(POLICY, replace(failed(None, outcome="healthy"), failed=False)),
    "not-known": decide(POLICY, replace(failed(None, outcome="inconclusive"), failed=False)),
    "left-to-people": decide(POLICY, failed("user.cancelled", "yes", "none")),
    "fix-first": decide(POLICY, failed("cuda.oom", "no", "fix-first")),
    "same-step": decide(POLICY, (again := failed("process.sigsegv", "once", "fix-first", 1)), before(again, 0)),
    "restarts-used": decide(POLICY, failed(attempt=POLICY.restarts)),
    "no-progress": decide(POLICY, failed(attempt=POLICY.restarts_without_progress)),
    "host-again": decide(POLICY, (on := failed(attempt=1, step=200, host="gpu-1")), before(on, 0, step=100)),
    "no-retry": decide(POLICY, failed("concept.data-parallel-flow", "no", "none")),
    "retries-used": decide(POLICY, (used := failed(attempt=1, step=None)), before(used, 0)),
    "many-hosts": decide(POLICY, failed("cuda.ecc", "yes", "retry-elsewhere", hosts=tuple("abcde"))),
    "host-at-fault": decide(POLICY, failed("cuda.ecc", "yes", "retry-elsewhere", hosts=("gpu-7",))),
    "transient": decide(POLICY, failed("slurm.preempted", "yes")),
    "try-once": decide(POLICY, failed(checkpoint="/ckpt/9")),
    "not-certain": decide(POLICY, failed("data.missing", "no", "fix-first", confidence="likely")),
    "unexplained": decide(POLICY, failed(None, "once", "none", outcome="unexplained")),
}
EXPECTED = {
    "not-failed": "wait", "not-known": "wait", "left-to-people": "wait", "fix-first": "stop", "same-step": "stop",
    "restarts-used": "wait", "no-progress": "wait", "host-again": "restart-excluding", "no-retry": "wait",
    "retries-used": "wait", "many-hosts": "wait", "host-at-fault": "restart-excluding", "transient": "restart",
    "try-once": "restart-from-checkpoint", "not-certain": "restart", "unexplained": "restart",
}  # fmt: skip


@pytest.mark.parametrize("rule", DECISIONS)
def test_each_rule_decides_where_it_should(rule: str) -> None:
    assert (DECISIONS[rule].rule, DECISIONS[rule].action) == (rule, EXPECTED[rule])


@pytest.mark.parametrize("rule", DECISIONS)
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("titled", [False, True])
def test_each_decision_has_one_sentence_in_both_languages(rule: str, lang: str, titled: bool) -> None:
    decision = DECISIONS[rule]
    assert str(decision.because.values.get("entry")) not in reason(decision, lang, titled=True)  # type: ignore[arg-type]
    told = reason(decision, lang, titled=titled)  # type: ignore[arg-type]
    assert told.endswith("." if lang == "en" else "。")
    assert told.count("。" if lang == "zh" else ". ") <= (1 if lang == "zh" else 0)
    assert not {"{", "}", "None"} & set(told.split())
    assert what(DECISIONS[rule], lang)  # type: ignore[arg-type]


def test_a_count_of_one_reads_as_english() -> None:
    assert " came back once without progress" in reason(DECISIONS["retries-used"], "en")
    assert "2 attempts" in reason(DECISIONS["same-step"], "en")
    assert not any(
        word in reason(one, "en") for one in DECISIONS.values() for word in (" 1 times", "1 restarts", " 1 attempts")
    )


def test_no_sentence_is_of_a_rule_that_does_not_exist() -> None:
    assert set(wording._REASONS) == set(DECISIONS) == {decision.rule for decision in DECISIONS.values()}


@pytest.mark.parametrize("rule", DECISIONS)
def test_a_decision_is_read_back_as_it_was_kept(rule: str) -> None:
    assert from_json_form(Decision, fields_form(DECISIONS[rule])) == DECISIONS[rule]


def test_the_json_says_what_to_do_why_and_what_is_left() -> None:
    told = decision_json(DECISIONS["host-at-fault"], "en")
    assert (told["action"], told["hosts"], told["reason"]) == (
        "restart-excluding",
        ["gpu-7"],
        "cuda.ecc is a fault of the host: restart without gpu-7.",
    )
    assert told["budget"] == {"job": 99, "progress": 7, "cause": 3}
    assert "because" not in told
    assert decision_json(DECISIONS["try-once"], "en")["checkpoint"] == "/ckpt/9"


def test_a_host_that_is_left_out_keeps_the_checkpoint() -> None:
    made = decide(POLICY, failed("cuda.ecc", "yes", "retry-elsewhere", hosts=("a",), checkpoint="/ckpt/9"))
    assert (made.action, made.checkpoint) == ("restart-excluding", "/ckpt/9")


@pytest.mark.parametrize("confidence", ["likely", "possible"])
def test_an_uncertain_cause_never_stops_a_job(confidence: str) -> None:
    for now in (
        failed("cuda.oom", "no", "fix-first", 3, confidence=confidence),
        failed("process.sigsegv", "once", "fix-first", 3, confidence=confidence, rank=1),
    ):
        assert decide(POLICY, now, before(now, 0, 1, 2)).action == "wait"


def test_a_temporary_cause_does_not_stop_a_job_at_one_step() -> None:
    now = failed("slurm.preempted", "yes", attempt=2)
    assert decide(POLICY, now, before(now, 0, 1)).action == "restart"


def test_equal_steps_on_one_host_are_the_hosts_fault_and_not_the_jobs() -> None:
    now = failed(attempt=1, host="gpu-1", rank=3)
    assert decide(POLICY, now, before(now, 0)).action == "restart-excluding"
    moved = decide(POLICY, replace(now, record=replace(now.record, host="gpu-2")), before(now, 0))
    assert (moved.action, moved.rule) == ("stop", "same-step")
    other_rank = replace(now, record=replace(now.record, host="gpu-2", rank=4))
    assert decide(POLICY, other_rank, before(now, 0)).action == "wait"


def test_the_only_host_of_a_run_is_not_left_out_for_failing_first() -> None:
    now = replace(failed(attempt=1, host="gpu-1"), several_hosts=False)
    assert decide(POLICY, now, before(now, 0)).rule == "retries-used"


def test_progress_gives_the_budget_back() -> None:
    now = failed(attempt=4, step=500)
    slowly = [replace(now.record, attempt=number, step=100 * (number + 1)) for number in range(4)]
    made = decide(POLICY, now, slowly)
    assert (made.action, made.budget) == ("restart", Budget(job=95, progress=7, cause=0))
    backwards = [replace(one, step=600) for one in slowly]
    assert decide(POLICY, now, backwards).action == "wait"


def test_attempts_that_nobody_reported_count_as_without_progress() -> None:
    assert decide(POLICY, failed(attempt=5)).budget.progress == POLICY.restarts_without_progress - 5 - 1


def test_attempts_of_the_history_that_are_not_earlier_are_left_out() -> None:
    now = failed(attempt=1)
    assert decide(POLICY, now, before(now, 1, 2, 3)) == decide(POLICY, now)
    twice = [*before(now, 0, step=1), *before(now, 0)]
    assert decide(POLICY, now, twice) == decide(POLICY, now, before(now, 0))


def test_the_delay_grows_while_a_cause_comes_back() -> None:
    delays = []
    for attempt in range(4):
        now = failed("slurm.preempted", "yes", attempt=attempt, step=None)
        delays.append(decide(POLICY, now, before(now, *range(attempt))).delay_seconds)
    assert delays == [0, 30, 120, 600]
    assert decide(POLICY, failed("storage.io-error")).delay_seconds == 60
    assert DECISIONS["fix-first"].delay_seconds == 0


def test_a_job_that_failed_without_a_verdict_is_tried_once_more() -> None:
    nothing = failure_of(None, 0)
    assert decide(POLICY, nothing).rule == "unexplained"
    assert decide(POLICY, failure_of(None, 1), [nothing.record]).rule == "retries-used"


def verdict(outcome: str = "explained") -> Verdict:
    line = Evidence(7, "CUDA out of memory")
    root = RootCause("cuda.oom", "OOM", "certain", 0.98, 3, 3, "gpu 1; rm -rf", evidence=(line,) * 5)
    return Verdict(
        source="run.log", outcome=outcome, signature=None, fingerprint="v1:a", root_cause=root, candidates=(), cascades=(),
        action=Action("no", "fix-first", ("gpu-1", "gpu 2; reboot"), ""),
        run=RunFacts(hosts=("a", "b"), step=12, checkpoint=Checkpoint("/ckpt/10", 10, None, 4)), attempts=(), earlier_runs=(),
        warnings=(), stats=Stats(), engine="1", knowledge="k",
    )  # fmt: skip


def test_a_verdict_gives_what_the_rules_ask_for() -> None:
    found = failure_of(verdict(), 2)
    assert found.record == AttemptRecord(2, "explained", "cuda.oom", "v1:a", 12, None, 3)
    assert (found.failed, found.certain, found.checkpoint, len(found.evidence)) == (True, True, "/ckpt/10", 3)
    assert found.several_hosts
    assert found.hosts == ("gpu-1",)  # what a log calls a host can be anything


@pytest.mark.parametrize("known", [False, True])
def test_its_sender_can_say_that_an_inconclusive_attempt_failed(known: bool) -> None:
    without = replace(verdict("inconclusive"), root_cause=None)
    assert failure_of(without, 0, known).failed is known


@pytest.mark.parametrize(
    ("rule", "following", "grade_of_it"),
    [
        ("fix-first", AttemptRecord(1, "explained", "cuda.oom", step=100), "right"),
        ("fix-first", AttemptRecord(1, "explained", "cuda.oom", step=200), "wrong"),
        ("fix-first", AttemptRecord(1, "healthy"), "wrong"),
        ("fix-first", AttemptRecord(1, "explained", "slurm.preempted"), "unknown"),
        ("fix-first", AttemptRecord(1, "inconclusive"), "unknown"),
        ("transient", AttemptRecord(1, "healthy"), "right"),
        ("transient", AttemptRecord(1, "explained", "slurm.preempted"), "wrong"),
        ("transient", AttemptRecord(1, "explained", "cuda.oom", step=101), "right"),
        ("retries-used", AttemptRecord(2, "explained", "nccl.timeout"), "right"),
        ("retries-used", AttemptRecord(2, "healthy"), "wrong"),
        ("host-at-fault", AttemptRecord(1, "explained", "cuda.ecc", host="gpu-7"), "unknown"),
        ("host-at-fault", AttemptRecord(1, "explained", "cuda.ecc", host="gpu-8"), "wrong"),
    ],
)
def test_the_next_attempt_grades_a_decision(rule: str, following: AttemptRecord, grade_of_it: str) -> None:
    assert grade(DECISIONS[rule], following) == grade_of_it
