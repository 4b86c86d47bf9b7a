"""How a failure stands in its run, in genuine logs."""

from pathlib import Path

import pytest

from torchtriage.domain.fact import Fact
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes, open_path

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
STAMP = "2026-05-01 09:20:0{second},{rank}00 [rank{rank}]: "


def of_corpus(engine: Engine, name: str) -> dict[str, Fact]:
    folder = CORPUS / name
    log = folder / "log" if (folder / "log").is_dir() else folder / "log.txt"
    return {fact.name: fact for fact in engine.triage(open_path(log)).facts}


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("kill9_two_hosts", {"failed_ranks": "3", "waiting_ranks": "0-1", "stopped_ranks": "2", "host_count": 2, "signal": "SIGKILL"}),
        ("stuck_rank_tee", {"missing_ranks": "1", "waiting_ranks": "0,2"}),
        ("abort_three_attempts", {"attempt_count": 3, "attempt": 0, "signal": "SIGABRT", "job_kind": "training"}),
        ("assert_batch_size", {"failed_ranks": "0-3"}),
    ],
)  # fmt: skip
def test_course_of_genuine_runs(engine: Engine, log: str, expected: dict[str, str | int]) -> None:
    found = of_corpus(engine, log)
    assert {name: found[name].value for name in expected if name in found} == expected


@pytest.mark.parametrize(("gone", "missing", "waiting"), [((3,), "3", "0-2,4-7"), ((3, 6), "3,6", "0-2,4-5,7")])
def test_a_rank_that_never_came_does_not_wait_whatever_it_prints(
    engine: Engine, gone: tuple[int, ...], missing: str, waiting: str
) -> None:
    """The abort that ends it is a word of peers, too."""
    waits = [
        f"[rank{rank}]:[E501 09:56:40.00{rank} ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=24081, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600000 "
        "milliseconds before timing out."
        for rank in range(8)
        if rank not in gone
    ]
    aborted = [
        f'[rank{rank}]: Traceback (most recent call last):\n[rank{rank}]:   File "/job/train.py", line 52, in step\n'
        f"[rank{rank}]:     return inner(batch)\n[rank{rank}]: RuntimeError: NCCL communicator was aborted."
        for rank in gone
    ]
    facts = {fact.name: fact.value for fact in engine.triage(from_bytes("\n".join([*aborted, *waits]).encode())).facts}
    assert (facts["missing_ranks"], facts["waiting_ranks"]) == (missing, waiting)


def test_the_spread_and_whether_all_failed_in_the_same_second(engine: Engine) -> None:
    def raised(rank: int, second: int) -> str:
        stamp = STAMP.format(rank=rank, second=second)
        return f'{stamp}Traceback (most recent call last):\n{stamp}  File "/job/train.py", line 4, in main\n{stamp}    run()\n{stamp}ValueError: bad\n'

    near = {fact.name: fact for fact in engine.triage(from_bytes((raised(0, 3) + raised(1, 3)).encode())).facts}
    far = {fact.name: fact for fact in engine.triage(from_bytes((raised(0, 1) + raised(1, 8)).encode())).facts}
    assert (near["spread"].text, near["same_second"].text) == ("0.1 s", "2 ranks")
    assert far["spread"].text == "7.1 s"
    assert "same_second" not in far


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ("pretrain_gpt.py", "training"),
        ("run_evaluation.py", "evaluation"),
        ("preprocess_data.py", "data preparation"),
        ("generate.py", "inference"),
        ("latest.py", None),
    ],
)
def test_the_kind_of_job_is_reported_by_the_script(engine: Engine, script: str, kind: str | None) -> None:
    log = f'Traceback (most recent call last):\n  File "/job/{script}", line 4, in <module>\n    go()\nKeyError: 1\n'
    found = next((fact for fact in engine.triage(from_bytes(log.encode())).facts if fact.name == "job_kind"), None)
    assert (found.value if found else None) == kind


WAIT = (
    "[rank{rank}]:[E1103 12:12:02.552 ProcessGroupNCCL.cpp:629] [Rank {rank}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum={number}, OpType={call}, NumelIn=64, NumelOut=64, Timeout(ms)=600000) ran for 600032 milliseconds "
    "before timing out.\n"
)


def test_who_waits_in_an_earlier_collective_is_behind(engine: Engine) -> None:
    log = WAIT.format(rank=5, number=912, call="BROADCAST") + "".join(
        WAIT.format(rank=rank, number=913, call="ALLREDUCE") for rank in (0, 1, 3)
    )
    found = {fact.name: fact.text for fact in engine.triage(from_bytes(log.encode())).facts}
    values = {"behind_ranks": "5", "behind_call": "BROADCAST", "behind_sequence": "912", "ahead_ranks": "0-1,3"}
    assert {name: found.get(name) for name in values} == values
    same = "".join(WAIT.format(rank=rank, number=913, call="ALLREDUCE") for rank in (0, 1, 3))
    assert "behind_ranks" not in {fact.name for fact in engine.triage(from_bytes(same.encode())).facts}


@pytest.mark.parametrize(("ahead", "gap", "case"), [(913, "1", "ranks-behind"), (41260, "40348", "counters-far-apart")])
def test_numbers_far_apart_are_not_told_as_ranks_that_lost_step(
    engine: Engine, ahead: int, gap: str, case: str
) -> None:
    log = WAIT.format(rank=5, number=912, call="BROADCAST") + WAIT.format(rank=0, number=ahead, call="ALLREDUCE")
    verdict = engine.triage(from_bytes(log.encode()))
    assert {fact.name: fact.text for fact in verdict.facts}["sequence_gap"] == gap
    assert verdict.answer is not None
    assert verdict.answer.case == case
