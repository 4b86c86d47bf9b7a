"""A rank that waited in vain is not the one whose failure bears no rank, though the log names no other."""

from app.triage.engine import Engine
from tests.logs import traceback
from tests.triage.test_engine import triage

WAITED = (
    "[rank{0}]:[E501 09:10:00.1 ProcessGroupNCCL.cpp:607] [Rank {0}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=52, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600410 milliseconds before timing out."
)
OOM = traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 5.31 GiB.")


def test_the_only_named_rank_is_not_blamed_if_it_waited(engine: Engine) -> None:
    root = triage(engine, OOM, WAITED.format(1)).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("cuda.oom", None)


def test_the_only_named_rank_is_that_of_a_failure_without_one(engine: Engine) -> None:
    root = triage(engine, [f"[rank1]: step {step} loss 0.5" for step in range(3)], OOM).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("cuda.oom", 1)


def test_a_rank_told_at_the_end_of_a_message_counts(engine: Engine) -> None:
    message = "AssertionError: FSDP assumes layer.0.weight is in the state_dict. param_name=weight rank=2."
    root = triage(engine, traceback(message)).root_cause
    assert root is not None
    assert root.rank == 2
