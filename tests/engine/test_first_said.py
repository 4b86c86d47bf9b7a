"""Which line is shown first, of several that say the same."""

import pytest

from tests.built_in import built_in_engine
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

WATCHDOG = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=78, OpType=BROADCAST, NumelIn=7, NumelOut=7, Timeout(ms)=600000) ran for 600{at} milliseconds before timing out."
OLD = "[Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800509 milliseconds before timing out."


@pytest.fixture(scope="module")
def engine() -> Engine:
    return built_in_engine()


def first(engine: Engine, *lines: str) -> str:
    root = engine.triage(from_bytes("\n".join(lines).encode())).root_cause
    assert root is not None
    return root.evidence[0].text


def test_the_rank_whose_clock_is_the_earliest(engine: Engine) -> None:
    clocks = {1: "03:04:11.061727749", 7: "03:04:10.850617863", 3: "03:04:11.061800000"}
    lines = [
        f"[rank{rank}]:[E810 {clock} ProcessGroupNCCL.cpp:683] [Rank {rank}] {WATCHDOG.format(at=f'00{rank}')}"
        for rank, clock in clocks.items()
    ]
    assert first(engine, "step 3 loss 0.5", *lines).startswith("[rank7]:")


def test_the_watchdogs_own_line_and_not_what_cpp_repeats_of_it(engine: Engine) -> None:
    own = f"[E ProcessGroupNCCL.cpp:821] {OLD}"
    ended = "terminate called after throwing an instance of 'std::runtime_error'"
    assert first(engine, "step 3 loss 0.5", own, ended, f"  what():  {OLD}") == own


def test_the_innermost_frame_where_the_log_is_cut_before_the_message(engine: Engine) -> None:
    site = "/opt/venv/lib/python3.12/site-packages/torch/distributed/fsdp"
    frame = f'[rank0]:   File "{site}/_flat_param.py", line 785, in _validate_tensors_to_flatten'
    head = "[rank0]: Traceback (most recent call last):"
    assert first(engine, head, frame, "[rank0]:     raise ValueError(", "[rank0]: ValueError:") == frame
