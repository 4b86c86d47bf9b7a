"""A rank that waited in vain is not the one whose failure bears no rank, though the log names no other."""

from app.triage.engine import Engine
from tests.logs import PEER_CLOSED, agent, report, traceback
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


def test_where_the_rank_waited_that_is_behind_stands_among_the_evidence(engine: Engine) -> None:
    behind = WAITED.format(2).replace("SeqNum=52", "SeqNum=51")
    root = triage(engine, [*(WAITED.format(rank) for rank in (0, 1, 3)), behind]).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("nccl.timeout", 2)
    assert behind in [line.text for line in root.evidence[:2]]


LATE = "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 8000ms for recv operation to complete"


def test_the_rank_that_gloos_others_waited_for_is_the_one_that_tells_of_no_peer(engine: Engine) -> None:
    """The agent's report lists all ranks of the host, those too that it stopped."""
    others = [*traceback(LATE, prefix="[rank0]: "), *traceback(LATE, prefix="[rank3]: "), *traceback(PEER_CLOSED, prefix="[rank1]: ")]  # fmt: skip
    root = triage(engine, others, agent(1, 0), report((0, 1), [(1, 1), (2, -15), (3, 1)])).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("gloo.timeout", 2)
    assert any("waited for rank 2" in reason for reason in root.reasons)


def test_of_two_that_tell_of_no_peer_none_is_named(engine: Engine) -> None:
    others = [*traceback(LATE, prefix="[rank0]: "), *traceback(LATE, prefix="[rank3]: ")]
    root = triage(engine, others, agent(1, 0), report((0, 1), [(1, -15), (2, -15), (3, 1)])).root_cause
    assert root is not None
    assert root.rank not in (1, 2)
