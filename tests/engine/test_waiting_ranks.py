"""A rank that waited in vain is not the one whose failure bears no rank, though the log names no other."""

from collections.abc import Callable

import pytest

from tests.engine.test_engine import triage
from tests.logs import PEER_CLOSED, agent, report, traceback
from torchtriage.engine import Engine

TIMEOUT_RANK_RULES = (
    "[rank{0}]:[E501 09:10:00.1 ProcessGroupNCCL.cpp:607] [Rank {0}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=52, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600410 milliseconds before timing out."
)
OOM = traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 5.31 GiB.")


def test_the_only_named_rank_is_not_blamed_if_it_waited(engine: Engine) -> None:
    root = triage(engine, OOM, TIMEOUT_RANK_RULES.format(1)).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("cuda.oom", None)


def test_the_only_named_rank_is_that_of_a_failure_without_one(engine: Engine) -> None:
    root = triage(engine, [f"[rank1]: step {step} loss 0.5" for step in range(3)], OOM).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("cuda.oom", 1)


def test_a_rank_reported_at_the_end_of_a_message_counts(engine: Engine) -> None:
    message = "AssertionError: FSDP assumes layer.0.weight is in the state_dict. param_name=weight rank=2."
    root = triage(engine, traceback(message)).root_cause
    assert root is not None
    assert root.rank == 2


def test_where_the_rank_waited_that_is_behind_is_among_the_evidence(engine: Engine) -> None:
    behind = TIMEOUT_RANK_RULES.format(2).replace("SeqNum=52", "SeqNum=51")
    root = triage(engine, [*(TIMEOUT_RANK_RULES.format(rank) for rank in (0, 1, 3)), behind]).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("nccl.timeout", 2)
    assert behind in [line.text for line in root.evidence[:2]]


LATE = "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 8000ms for recv operation to complete"


def test_the_rank_that_gloos_others_waited_for_is_the_one_that_shows_of_no_peer(engine: Engine) -> None:
    """The agent's report lists all ranks of the host, those too that it stopped."""
    others = [*traceback(LATE, prefix="[rank0]: "), *traceback(LATE, prefix="[rank3]: "), *traceback(PEER_CLOSED, prefix="[rank1]: ")]  # fmt: skip
    root = triage(engine, others, agent(1, 0), report((0, 1), [(1, 1), (2, -15), (3, 1)])).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("gloo.timeout", 2)
    assert any("waited for rank 2" in reason for reason in root.reasons)


def test_of_two_that_show_of_no_peer_none_is_named(engine: Engine) -> None:
    others = [*traceback(LATE, prefix="[rank0]: "), *traceback(LATE, prefix="[rank3]: ")]
    root = triage(engine, others, agent(1, 0), report((0, 1), [(1, -15), (2, -15), (3, 1)])).root_cause
    assert root is not None
    assert root.rank not in (1, 2)


HEALTHY = [f"[rank{rank}]: step {step} loss 0.5" for step in range(3) for rank in range(4)]
OTHERS_WAITED = [TIMEOUT_RANK_RULES.format(rank) for rank in (0, 1, 3)]


@pytest.mark.parametrize(
    ("said", "entry"),
    [
        ("run_all.sh: line 21: 40713 Killed                  python3 pretrain.py", "process.oom-killed"),
        (" 12%|█▏        | 214/1781 [01:32<11:16,  2.32it/s]Aborted (core dumped)", "process.sigabrt"),
        ("free(): invalid pointer", "process.sigabrt"),
        ("bash: ./launch.sh: Permission denied", "storage.permission"),
    ],
)
def test_the_error_of_the_awaited_rank_is_the_cause(
    engine: Engine, said: str, entry: str, decided: Callable[[], set[str]]
) -> None:
    ended = "slurmstepd: error: *** STEP 71.0 ON gpu-1 CANCELLED AT 2026-05-01T09:10:00 ***"
    root = triage(engine, "world_size=4", HEALTHY, f"[rank2]: {said}", OTHERS_WAITED, ended).root_cause
    assert root is not None
    assert (root.entry, root.rank) == (entry, 2)
    assert any("waited for rank 2" in reason for reason in root.reasons)
    assert {"missing-rank-said-it"} <= decided()


@pytest.mark.parametrize("late", [False, True])
def test_a_weak_word_of_a_rank_that_waited_or_one_that_comes_late_is_not_a_cause(engine: Engine, late: bool) -> None:
    said = f"[rank{2 if late else 1}]: bash: ./launch.sh: Permission denied"
    parts: list[str | list[str]] = [OTHERS_WAITED, said] if late else [said, OTHERS_WAITED]
    root = triage(engine, "world_size=4", HEALTHY, *parts).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("nccl.timeout", 2)


LOST = "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1333, remote process exited or there was a network error, NCCL version 2.21.5"


def test_the_one_rank_that_lost_no_peer_is_the_one_that_the_others_lost(engine: Engine) -> None:
    lost = [line for rank in (0, 1, 3) for line in traceback(LOST, prefix=f"[rank{rank}]: ")]
    root = triage(engine, HEALTHY, lost).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("nccl.remote-error", 2)
    assert any("waited for rank 2" in reason for reason in root.reasons)
    root = triage(engine, HEALTHY, "[rank2]: free(): invalid pointer", lost).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("process.sigabrt", 2)


def test_few_that_lost_a_peer_show_nothing_of_a_run_of_unknown_size(engine: Engine) -> None:
    """Rank 0 printed steps, and rank 3 lost somebody: it may be any that the log does not show."""
    steps = [f"[rank0]: step {step} loss 0.5" for step in range(3)]
    root = triage(engine, steps, traceback(LOST, prefix="[rank3]: ")).root_cause
    assert root is not None
    assert root.rank != 0


COMPILING = "AUTOTUNE mm(8192x4096, 4096x14336)"
TIMED_OUT = (
    "[rank3]:[E320 08:11:14.902 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=14, OpType=ALLREDUCE, NumelIn=524288, NumelOut=524288, Timeout(ms)=600000) ran for 600064 "
    "milliseconds before timing out."
)


@pytest.mark.parametrize(
    ("between", "compiles"),
    [([], True), (["Use `export NCCL_DEBUG=INFO`"], True), ([f"step {step} loss 2.1" for step in range(20)], False)],
    ids=["right above", "a line between", "steps between"],
)
def test_a_rank_that_compiles_is_named_only_right_above_the_wait(
    engine: Engine, between: list[str], compiles: bool
) -> None:
    answer = triage(engine, COMPILING, between, TIMED_OUT).answer
    assert answer is not None
    assert (answer.case == "one-rank-compiles") is compiles
