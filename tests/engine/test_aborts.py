"""What a process said before it aborted: a C++ exception that nobody caught, a watchdog that only noticed."""

from collections.abc import Callable

import pytest

from tests.engine.test_engine import triage
from tests.logs import BANNER, agent, report, steps, traceback
from torchtriage.engine import Engine

CLOSED = "[../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.1.2.3]:41001"
FATAL = [
    "Fatal Python error: Aborted", "", "Current thread 0x00007f13 (most recent call first):",
    '  File "/job/train.py", line 20 in main',
]  # fmt: skip
REMOTE = (
    "NCCL error: remote process exited or there was a network error, NCCL version 2.20.5\n"
    "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n"
    "Last error:\nsocketProgress: Connection closed by remote peer node7<4411>"
)


def thrown(message: str, kind: str = "gloo::IoException", prefix: str = "") -> list[str]:
    return [f"{prefix}terminate called after throwing an instance of '{kind}'", f"{prefix}  what():  {message}"]


def watchdog_work(rank: int) -> str:
    return (
        f"[rank{rank}]:[E501 09:40:00.1 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Exception "
        "(either an error or timeout) detected by watchdog at work: 77, last enqueued NCCL work: 77, last completed NCCL work: 76."
    )


def ended(rank: int, message: str) -> str:
    return (
        f"[rank{rank}]:[E501 09:40:00.2 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] "
        f"Process group watchdog thread terminated with exception: {message}"
    )


@pytest.mark.parametrize("order", ["what first", "dump first"])
def test_an_abort_follows_from_the_exception_that_no_one_caught(engine: Engine, order: str) -> None:
    said = [thrown(CLOSED), FATAL] if order == "what first" else [FATAL, thrown(CLOSED)]
    verdict = triage(engine, BANNER, steps(range(2)), *said, agent(-6))
    assert verdict.root_cause is not None
    assert verdict.root_cause.entry == "gloo.error"
    assert [cascade.because_of for cascade in verdict.cascades if cascade.entry == "process.sigabrt"] == ["gloo.error"]


def test_another_ranks_abort_does_not_follow(engine: Engine) -> None:
    verdict = triage(engine, BANNER, steps(range(2)), thrown(CLOSED, prefix="[rank0]: "), agent(-6, 1), report((1, -6)))
    assert verdict.root_cause is not None
    assert (verdict.root_cause.entry, verdict.root_cause.rank) == ("process.sigabrt", 1)


def test_of_an_unknown_exception_its_words_are_shown(engine: Engine) -> None:
    root = triage(
        engine, BANNER, steps(range(2)), FATAL, thrown("the left shoe is missing", "shoe::Error"), agent(-6)
    ).root_cause
    assert root is not None
    assert root.entry == "process.sigabrt"
    assert "the left shoe is missing" in root.evidence[0].text


@pytest.mark.parametrize(
    ("message", "entry"),
    [
        (REMOTE, "nccl.remote-error"),
        ("CUDA error: an illegal memory access was encountered", "cuda.illegal-access"),
        ("CUDA error: uncorrectable ECC error encountered", "cuda.ecc"),
    ],
)
def test_the_watchdogs_exception_is_the_cause_not_the_report_of_it(
    engine: Engine, message: str, entry: str, decided: Callable[[], set[str]]
) -> None:
    root = triage(engine, BANNER, steps(range(4)), watchdog_work(2), ended(2, message)).root_cause
    assert root is not None
    assert (root.entry, root.rank) == (entry, 2)
    assert {"something-failed"} <= decided()


def test_a_watchdog_that_says_no_more_is_a_timeout(engine: Engine) -> None:
    root = triage(engine, BANNER, steps(range(4)), watchdog_work(2)).root_cause
    assert root is not None
    assert root.entry == "nccl.timeout"


@pytest.mark.parametrize("error", ["Socket Timeout", "Connection reset by peer"])
def test_the_rank_is_read_from_the_line_when_a_communicator_cannot_be_set_up(
    engine: Engine, error: str, decided: Callable[[], set[str]]
) -> None:
    line = (
        "torch.distributed.DistBackendError: [4] is setting up NCCL communicator and retrieving ncclUniqueId from [0] "
        f"via c10d key-value store by key '0', but store->get('0') got error: {error}"
    )
    root = triage(engine, BANNER, line).root_cause
    assert root is not None
    assert root.rank == 4
    assert {"written-in-the-line"} <= decided()


def test_what_a_sign_calls_weak_is_so_whatever_it_is_near_to(engine: Engine) -> None:
    ignored = "RuntimeError: DataLoader worker (pid 91) is killed by signal: Aborted."
    root = triage(
        engine, BANNER, steps(range(2)), traceback("KeyError: 'image'", prefix="[rank1]: "), ignored, agent(1, 1)
    ).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("usage.python-error", 1)


@pytest.mark.parametrize(
    ("said", "entry"),
    [
        ("Received sigquit from a child process. It usually means the child failed.", "usage.python-error"),
        ("Loading checkpoint shards", "process.oom-killed"),
    ],
)
def test_killed_by_the_shell_is_no_cause_when_the_program_killed_itself(
    engine: Engine,
    said: str,
    entry: str,
    decided: Callable[[], set[str]],
) -> None:
    failed = traceback("AttributeError: no attribute 'foo'", [("/job/serve.py", 3, "run", "x.foo")])
    lines = [f"[2026-03-09 00:57:15 TP4] Scheduler hit an exception: {failed[0]}", *failed[1:], "", said, "Killed"]
    root = triage(engine, BANNER, steps(range(1)), lines).root_cause
    assert root is not None
    assert root.entry == entry
    assert ("killed-itself" in decided()) is (entry == "usage.python-error")
