"""Ranks that lost a peer write before the peer does: what the peer died of is the cause, wherever it stands."""

from collections.abc import Callable

import pytest

from tests.engine.test_engine import triage
from tests.logs import BANNER, NO_FAILURE, PEER_CLOSED, agent, report, steps, traceback
from torchtriage.engine import Engine

REFUSED = (
    "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3690, "
    "unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.27.3\n"
    "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.\n"
    "Last error:\nsocketPollConnect: connect to 10.0.0.3<40001> returned Connection refused, exceeded error retry count"
)
TIMED_OUT = (
    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 8000ms for recv "
    "operation to complete"
)
FULL = "OSError: [Errno 28] No space left on device"
GUESSED = (
    "[rank0]:[W501 09:00:00.1 ProcessGroupNCCL.cpp:5023] Guessing device ID based on global rank. This can cause a hang "
    "if rank to GPU mapping is heterogeneous. You can specify device_id in init_process_group()"
)


@pytest.mark.parametrize("lost", [REFUSED, PEER_CLOSED])
@pytest.mark.parametrize("prefix", ["[rank{}]: ", "{}: ", "[default{}]:"])
@pytest.mark.parametrize(("failed", "entry"), [(FULL, "storage.disk-full"), ("IndexError: pop from empty list", "usage.index-out-of-range")])  # fmt: skip
def test_the_lost_peers_exception_is_the_cause_when_it_is_printed_last(
    engine: Engine,
    lost: str,
    prefix: str,
    failed: str,
    entry: str,
    decided: Callable[[], set[str]],
) -> None:
    left = [line for rank in (0, 2) for line in traceback(lost, prefix=prefix.format(rank))]
    root = triage(engine, BANNER, steps(range(3)), left, traceback(failed, prefix=prefix.format(3)), report((0, 1), [(3, 1)])).root_cause  # fmt: skip
    assert root is not None
    assert (root.entry, root.rank) == (entry, 3)
    assert "lost-peer-raised" in decided() or lost == PEER_CLOSED


@pytest.mark.parametrize(
    ("failed", "entry"),
    [("KeyError: 'labels'", "usage.python-error"), ("ShardError: shard 3 ends after 3005 records", None)],
)
def test_a_workers_exception_before_its_peers_lost_connections_is_the_cause(
    engine: Engine, failed: str, entry: str | None, decided: Callable[[], set[str]]
) -> None:
    left = [line for rank in (0, 1) for line in traceback(REFUSED, prefix=f"[rank{rank}]: ")]
    mine = traceback(failed, [("/job/loader.py", 12, "fetch", "return rows[index]")], "[rank2]: ")
    root = triage(engine, BANNER, steps(range(3)), mine, left, report((0, 1), [(1, 1), (2, 1)])).root_cause
    assert root is not None
    assert (root.entry, root.rank) == (entry, 2)
    assert {"worker-failed-before-peers"} <= decided()


@pytest.mark.parametrize(("rank", "entry"), [(1, "usage.python-error"), (2, "usage.index-out-of-range")])
def test_of_bugs_in_two_ranks_the_first_one_is_the_cause(
    engine: Engine, rank: int, entry: str, decided: Callable[[], set[str]]
) -> None:
    frames = [("/job/loader.py", 12, "fetch", "return rows[index]")]
    first = traceback("TypeError: unsupported operand type(s) for /: 'str' and 'int'", frames, "[rank2]: ")
    then = traceback("IndexError: list index out of range", frames, f"[rank{rank}]: ")
    root = triage(engine, BANNER, steps(range(3)), first, then).root_cause
    assert root is not None
    assert (root.entry, root.rank) == (entry, 2)
    assert ("other-rank-failed-before" in decided()) is (rank == 1)


def test_peers_lost_the_rank_that_died_of_a_signal(engine: Engine, decided: Callable[[], set[str]]) -> None:
    left = [line for rank in (0, 1) for line in traceback(REFUSED, prefix=f"[rank{rank}]: ")]
    root = triage(engine, BANNER, steps(range(3)), left, agent(1, 0), report((0, 1), [(1, 1), (2, -9), (3, -15)])).root_cause  # fmt: skip
    assert root is not None
    assert (root.entry, root.rank) == ("process.oom-killed", 2)
    assert {"lost-peer-died-of-signal"} <= decided()


def test_a_rank_that_shows_both_keeps_the_first(engine: Engine) -> None:
    """It lost the connection, and could not write its last checkpoint."""
    both = [*traceback(REFUSED, prefix="[rank1]: "), *traceback(FULL, prefix="[rank1]: ")]
    root = triage(engine, BANNER, steps(range(3)), both).root_cause
    assert root is not None
    assert root.entry == "nccl.unhandled-system-error"


@pytest.mark.parametrize(
    ("below", "outcome"),
    [
        ([], "explained"),
        (["Loaded 8 shards in 12.1s", "eval: acc=0.812 f1=0.79", "Saved predictions to out/pred.jsonl"], "healthy"),
        (["Then it hangs.", "I tried another port.", "Any ideas what I can do?"], "explained"),
    ],
)
def test_a_warning_is_not_a_cause_where_the_program_printed_more(
    engine: Engine, below: list[str], outcome: str
) -> None:
    assert triage(engine, GUESSED, below).outcome == outcome


def test_an_uncaught_echo_ends_a_run_that_printed_steps(engine: Engine) -> None:
    closed = "torch.distributed.elastic.rendezvous.api.RendezvousClosedError"
    launcher = traceback(closed, [("/env/bin/torchrun", 8, "<module>", "sys.exit(main())")])
    verdict = triage(engine, steps(range(5)), launcher)
    assert verdict.outcome == "explained"
    assert triage(engine, steps(range(5))).outcome == "healthy"


def test_an_agent_that_ends_its_workers_says_that_something_failed(engine: Engine) -> None:
    lines = [f"W0501 09:00:00.1 11 torch/distributed/elastic/multiprocessing/api.py:1010] Sending process {pid} closing signal SIGTERM" for pid in (71, 72)]  # fmt: skip
    verdict = triage(engine, lines)
    assert verdict.outcome == "unexplained"


@pytest.mark.parametrize("first", [True, False])
def test_a_timeout_is_the_cause_when_the_signal_came_after_it(
    engine: Engine, first: bool, decided: Callable[[], set[str]]
) -> None:
    hung = [line for rank in (0, 1) for line in traceback(TIMED_OUT, prefix=f"[rank{rank}]: ")]
    ended = [
        "W0501 09:10:00.1 400 torch/distributed/elastic/agent/server/api.py:753] Received 15 death signal, shutting down workers",
        *traceback("torch.distributed.elastic.multiprocessing.api.SignalException: Process 400 got signal: 15"),
    ]
    root = triage(engine, BANNER, steps(range(3)), *((hung, ended) if first else (ended, hung))).root_cause
    assert root is not None
    assert root.entry == ("gloo.timeout" if first else "elastic.sigterm")
    assert ("missing-before-teardown" in decided()) is first


def test_the_native_frames_below_a_warning_are_of_it(engine: Engine) -> None:
    warning = "[rank1]:[W501 09:00:00.1 TCPStore.cpp:106] [c10d] sendBytes failed on SocketImpl(fd=67): Broken pipe"
    frames = ["Exception raised from sendBytes at /pytorch/torch/csrc/distributed/c10d/Utils.hpp:653 (most recent call first):"]  # fmt: skip
    frames += [f"frame #{number}: <unknown function> + 0x5ba8 (0x7589 in /env/libtorch_cpu.so)" for number in range(9)]
    root = triage(engine, warning, frames).root_cause
    assert root is not None
    assert root.entry == "nccl.remote-error"
    assert triage(engine, warning, ["saved the last file", "read all of them", "bye now"]).outcome in NO_FAILURE


def test_the_agent_that_sends_an_interrupt_was_interrupted_itself(engine: Engine) -> None:
    api = "W0501 09:10:00.1 400 torch/distributed/elastic/multiprocessing/api.py:1010]"
    sent = [f"{api} Sending process {pid} closing signal SIGINT" for pid in (71, 72)]
    cut = traceback("", prefix="[rank5]: ")[:-1]
    root = triage(engine, BANNER, steps(range(3)), sent, cut).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("user.cancelled", None)


def test_the_death_of_a_worker_that_ray_reports_first_followed_from_what_the_worker_says(engine: Engine) -> None:
    died = "(raylet) A worker died or was killed while executing a task by an unexpected system error. Worker exit detail: Worker unexpectedly exits with a connection error code 2."
    watchdog = "(WorkerDict pid=41) [rank0]:[E501 09:40:00.1 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800012 milliseconds before timing out."
    lost = traceback("ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.")
    root = triage(engine, died, watchdog, lost).root_cause
    assert root is not None
    assert root.entry == "nccl.timeout"
    alone = triage(engine, died, lost).root_cause
    assert alone is not None
    assert alone.entry == "ray.error"
