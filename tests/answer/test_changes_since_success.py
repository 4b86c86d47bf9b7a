"""Which changes are told since a job worked, and in which order."""

from __future__ import annotations

from dataclasses import replace

from tests.built_in import built_in_engine
from torchtriage.answer.changes_since_success import KnownRun, changes_since_success
from torchtriage.answer.comparison_wording import sentence
from torchtriage.domain.run_summary import RunSummary
from torchtriage.domain.verdict import Verdict
from torchtriage.reading.sources import from_bytes

GOOD = RunSummary(
    versions={"torch": "2.5.1", "six": "1.0", "flash-attn": "2.7"}, environment={"NCCL_DEBUG": "WARN", "SEED": "1"},
    hosts=("gpu-001", "gpu-002"), phases={"start": 30.0}, lines=("loading", "step #"))  # fmt: skip


def triaged(log: bytes) -> Verdict:
    return built_in_engine().triage(from_bytes(log))


def changes_of(now: RunSummary, verdict: Verdict | None = None, good: RunSummary = GOOD, most: int = 9) -> list[str]:
    vocabulary = built_in_engine().knowledge.vocabulary
    found = changes_since_success(KnownRun(summary=good), KnownRun(summary=now, verdict=verdict), vocabulary, most)
    return [sentence(change, False) for change in found]


def test_known_packages_come_before_variables_hosts_and_others() -> None:
    now = replace(
        GOOD, versions={"torch": "2.6.0", "six": "1.1", "triton": "3.2"},
        environment={"NCCL_DEBUG": "INFO", "SEED": "2"}, hosts=("gpu-002", "gpu-021"), phases={"start": 300.0},
    )  # fmt: skip
    assert changes_of(now) == [
        "torch 2.5.1 → 2.6.0", "triton 3.2 is new", "flash-attn 2.7 is gone", "NCCL_DEBUG WARN → INFO",
        "host gpu-021 is new", "seconds to the first step 30 → 300", "six 1.0 → 1.1", "SEED 1 → 2",
    ]  # fmt: skip
    assert len(changes_of(now, most=3)) == 3


def test_a_new_host_that_failed_comes_first() -> None:
    verdict = triaged(b"RuntimeError: CUDA error: uncorrectable ECC error encountered\n")
    assert verdict.root_cause is not None
    verdict = replace(verdict, root_cause=replace(verdict.root_cause, host="gpu-021"))
    now = replace(GOOD, versions={**GOOD.versions, "torch": "2.6.0"}, hosts=("gpu-002", "gpu-021"))
    assert changes_of(now, verdict)[:2] == ["host gpu-021 is new", "torch 2.5.1 → 2.6.0"]


def test_what_the_verdict_names_comes_first() -> None:
    verdict = triaged(b"step 1\nTraceback (most recent call last):\nRuntimeError: NCCL error: x\n")
    assert verdict.root_cause is not None
    cause = replace(verdict.root_cause, entry="nccl.timeout")
    now = replace(GOOD, versions={**GOOD.versions, "torch": "2.6.0"}, environment={"NCCL_DEBUG": "INFO", "SEED": "1"})
    assert changes_of(now, replace(verdict, root_cause=cause)) == ["NCCL_DEBUG WARN → INFO", "torch 2.5.1 → 2.6.0"]
    assert changes_of(now) == ["torch 2.5.1 → 2.6.0", "NCCL_DEBUG WARN → INFO"]


def test_what_each_run_has_for_itself_and_what_is_not_known_is_left_out() -> None:
    own = {**GOOD.environment, "SLURM_JOBID": "7", "RUN_ID": "x", "MARK": "2026-05-01T09:05:11", "HOSTNAME": "a"}
    assert changes_of(replace(GOOD, environment=own)) == []
    assert changes_of(GOOD, good=RunSummary()) == []
    assert changes_of(RunSummary()) == []


def test_versions_of_two_sources_are_compared_without_their_build() -> None:
    verdict = triaged(b"PyTorch version: 2.5.1+cu124\nTraceback (most recent call last):\nKeyError: 1\n")
    assert verdict.run.versions.get("torch") == "2.5.1+cu124"
    vocabulary = built_in_engine().knowledge.vocabulary
    for listed, wanted in (("2.5.1", []), ("2.4.0", ["torch 2.4.0 → 2.5.1+cu124"])):
        good = KnownRun(summary=RunSummary(versions={"torch": listed}))
        found = changes_since_success(good, KnownRun(verdict=verdict), vocabulary, 3)
        assert [sentence(change, False) for change in found] == wanted
