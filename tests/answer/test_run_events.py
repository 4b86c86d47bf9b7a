"""Events, hosts and last progress of a verdict: who speaks, what it is to the cause, and that all of it is bounded."""

from __future__ import annotations

from datetime import datetime, timedelta

from tests.built_in import built_in_engine
from tests.logs import report, traceback
from torchtriage.answer import run_events
from torchtriage.domain.verdict import RunEvent, Verdict
from torchtriage.reading.sources import from_bytes

BEGAN = datetime(2026, 5, 1, 9)


def verdict(lines: list[str]) -> Verdict:
    return built_in_engine().triage(from_bytes("\n".join(lines).encode(), "run.log"))


def at(seconds: float) -> str:
    return f"{BEGAN + timedelta(seconds=seconds)}"


def step(rank: int, number: int) -> str:
    return f"[rank{rank}]: {at(10 * number)} | step {number} | loss {3 / (number + 1):.4f}"


def timed_out(rank: int, seconds: float) -> str:
    time = BEGAN + timedelta(seconds=seconds)
    return (
        f"[rank{rank}]:[E{time:%m%d %H:%M:%S}.000000000 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for "
        "600000 milliseconds before timing out."
    )


def communicator_line(rank: int, host: str, ranks: int) -> str:
    return f"{host}:41:41 [{rank}] NCCL INFO comm 0x5 rank {rank} nranks {ranks} cudaDev 0 busId 1000 - Init COMPLETE"


XID = "May  1 09:06:45 gpu-002 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=python, GPU has fallen off the bus."
RUN = [
    *(communicator_line(rank, f"gpu-00{rank // 2 + 1}", 4) for rank in range(4)),
    *(step(rank, number) for number in range(40) for rank in range(4) if rank != 3 or number < 38),
    XID,
    *(timed_out(rank, 1005 + rank) for rank in (0, 1, 2)),
    f"{at(1012)} ERROR heartbeat: the monitor answered nonsense",
    f"slurmstepd: error: *** STEP 31.0 ON gpu-001 CANCELLED AT {at(1020).replace(' ', 'T')} DUE TO TASK FAILURE ***",
]


def events_of(expected: Verdict) -> dict[tuple[str, str], RunEvent]:
    return {(event.kind, event.standing): event for event in expected.events}


def test_each_event_says_who_speaks_and_what_it_is_to_the_cause() -> None:
    events = events_of(verdict(RUN))
    cause = events["kernel", "cause"]
    assert (cause.host, cause.entry, cause.time) == ("gpu-002", "xid.79", "2026-05-01T09:06:45")
    waited = events["watchdog", "consequence"]
    assert (str(waited.ranks), waited.count) == ("0-2", 3)
    assert (waited.time, waited.until) == ("2026-05-01T09:16:45.000000000", "2026-05-01T09:16:47.000000000")
    assert events["scheduler", "consequence"].host == "gpu-001"
    assert "nonsense" in events["program", "unknown"].text
    assert [event.line for event in verdict(RUN).events] == sorted(event.line for event in verdict(RUN).events)


def test_what_the_run_continued_after_is_a_warning() -> None:
    refused = (
        "[rank1]:[W501 09:01:05.000000000 socket.cpp:752] [c10d] The client socket has failed to connect to "
        "[gpu-001]:29500 (errno: 110 - Connection timed out)."
    )
    steps = [step(0, number) for number in range(40)]
    result = verdict(
        [*steps[:10], refused, *steps[10:], *traceback("ValueError: a NaN in the loss", prefix="[rank0]: ")]
    )
    assert result.root_cause is not None
    warned = events_of(result)["program", "survived"]
    assert (warned.line, str(warned.ranks)) == (11, "1")


def test_it_shows_which_ranks_ran_where_and_how_far_they_came() -> None:
    run = verdict(RUN).run
    assert {host: str(ranks) for host, ranks in run.host_ranks.items()} == {"gpu-001": "0-1", "gpu-002": "2-3"}
    assert [(str(one.ranks), one.step) for one in run.last_progress] == [("3", 37), ("0-2", 39)]
    behind = run.last_progress[0]
    assert behind.line == RUN.index(step(3, 37)) + 1
    assert behind.time == "2026-05-01T09:06:10"


def test_a_name_that_every_host_has_is_not_one() -> None:
    result = verdict(
        [*(step(0, number) for number in range(9)), *traceback("ValueError: x"), *report((1, 3), host="localhost")]
    )
    assert result.run.host_ranks == {}
    assert all(event.host is None for event in result.events)


def test_numbers_of_nodes_are_not_taken_for_ranks() -> None:
    tasks = [f"srun: error: gpu-00{node + 1}: task {node}: Exited with exit code 1" for node in range(2)]
    result = verdict([*(step(rank, number) for number in range(9) for rank in range(8)), *traceback("ValueError: x", prefix="[rank5]: "), *tasks])  # fmt: skip
    assert result.run.host_ranks == {}


def test_however_much_went_wrong_few_events_are_kept_and_the_cause_is_one() -> None:
    names = [f"{chr(65 + number % 26)}{chr(97 + number // 26) * 3}" for number in range(200)]
    lines = [line for name in names for line in traceback(f"widgets.Jam{name}: it jammed {'W' * 300}")]
    result = verdict([*(step(0, number) for number in range(9)), XID, *lines])
    assert 10 < len(result.events) <= run_events.MAX_EVENTS
    assert all(len(event.text) <= 160 for event in result.events)
    assert [event.standing for event in result.events].count("cause") == 1


def test_ranks_that_all_came_to_other_steps_share_the_last_group() -> None:
    lines = [step(rank, number) for rank in range(32) for number in range(rank + 1)]
    came = verdict([*lines, *traceback("ValueError: x", prefix="[rank5]: ")]).run.last_progress
    assert len(came) == run_events.MAX_STEPS
    assert (str(came[0].ranks), came[0].step) == ("0", 0)
    assert (str(came[-1].ranks), came[-1].step) == ("15-31", 31)


def test_of_a_long_log_it_is_not_reported_how_far_each_rank_came() -> None:
    lines = [step(rank, number) for number in range(300) for rank in range(8)]
    assert verdict([*lines, *traceback("ValueError: x", prefix="[rank5]: ")]).run.last_progress == ()


def test_a_secret_in_an_events_line_is_taken_out() -> None:
    lines = [*(step(0, number) for number in range(9)), *traceback("ValueError: x"), "ERROR upload: token=hf_abcdefghijklmnopqrstuvwxyzABCDEFGH was refused"]  # fmt: skip
    result = verdict(lines)
    assert "hf_abcdefghij" not in str(result.as_dict())
    assert any("upload" in event.text for event in result.events)
