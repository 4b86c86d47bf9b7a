"""What failed first and what followed: restarts, torchelastic's word, missing ranks, mismatches, killed and stopped."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.logs import BANNER, PEER_CLOSED, WAITING, agent, report, steps, text, traceback
from torchtriage.domain.verdict import Verdict
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes, open_path

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 2 has a total capacity of 79.15 GiB"


def triage(engine: Engine, *parts: str | list[str]) -> Verdict:
    return engine.triage(from_bytes(text(*parts)))


def watchdog(rank: int, sequence: int = 78, operation: str = "ALLREDUCE", size: int = 1024) -> str:
    return (
        f"[rank{rank}]:[E501 09:20:00.1 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum={sequence}, OpType={operation}, NumelIn={size}, NumelOut={size}, Timeout(ms)=600000) ran for 600012 milliseconds before timing out."
    )


def test_each_attempt_is_triaged_and_the_first_cause_wins(engine: Engine) -> None:
    verdict = triage(engine, BANNER, steps(range(2)), traceback(OOM, prefix="[rank1]: "), agent(1, 1),
                     steps(range(2)), traceback("KeyError: 'scheduler'", prefix="[rank0]: "), agent(1, 0),
                     traceback(PEER_CLOSED, WAITING, "[rank0]: "), agent(1, 0), report((0, 1)))  # fmt: skip
    assert verdict.root_cause is not None
    assert (verdict.root_cause.entry, verdict.root_cause.rank, verdict.root_cause.attempt) == ("cuda.oom", 1, 0)
    assert [(one.attempt, one.entry) for one in verdict.attempts] == [
        (0, "cuda.oom"),
        (1, "usage.python-error"),
        (2, "gloo.error"),
    ]


HANGUP = "run.sh: line 9: 22871 Hangup                  torchrun --nproc_per_node 4 train.py"
CTRL_C = "srun: sending Ctrl-C to StepId=88123.0\nsrun: forcing job termination"


@pytest.mark.parametrize(
    ("first", "second", "entries"),
    [(HANGUP, CTRL_C, ["elastic.sighup", "user.cancelled"]), (CTRL_C, HANGUP, ["user.cancelled", "elastic.sighup"])],
)
def test_of_two_that_explain_one_another_the_earlier_is_the_cause(
    engine: Engine, first: str, second: str, entries: list[str]
) -> None:
    verdict = triage(engine, steps(range(2)), first, second)
    assert verdict.root_cause is not None
    assert [verdict.root_cause.entry, *(one.entry for one in verdict.cascades)] == entries


def test_an_attempt_that_only_echoes_gives_way_to_the_next(engine: Engine) -> None:
    verdict = triage(engine, BANNER, steps(range(2)), traceback(PEER_CLOSED, WAITING, "[rank0]: "), agent(1, 0),
                     steps(range(2)), traceback(OOM, prefix="[rank1]: "), agent(1, 1), report((1, 1)))  # fmt: skip
    assert verdict.root_cause is not None
    assert (verdict.root_cause.entry, verdict.root_cause.attempt) == ("cuda.oom", 1)


def test_the_killed_rank_is_reported_from_those_the_agent_stopped(engine: Engine) -> None:
    verdict = triage(engine, BANNER, steps(range(4)), agent(-11, 2, 72), report((0, -15), [(1, -15), (2, -11), (3, -15)]))  # fmt: skip
    root = verdict.root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("process.sigsegv", 2)
    assert any("torchrun reports rank 0" in reason for reason in root.reasons)
    assert not any("-15" in line.text for line in root.evidence)


def test_the_line_above_a_spawned_process_traceback_gives_way_to_it(engine: Engine) -> None:
    refused = "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:799] connect [10.0.0.2]:2226: Connection refused"
    spawned = ["", "-- Process 1 terminated with the following error:"]
    root = triage(engine, spawned, traceback(refused, WAITING)).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("gloo.error", 1)
    root = triage(engine, spawned).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("elastic.child-failed", 1)


def test_the_line_that_announces_a_spawned_process_traceback_is_no_cause(
    engine: Engine, decided: Callable[[], set[str]]
) -> None:
    frames = [
        "Traceback (most recent call last):",
        '  File "/opt/env/lib/python3.11/site-packages/torch/multiprocessing/spawn.py", line 90, in _wrap',
        "    fn(i, *args)",
        '  File "/work/train.py", line 31, in main_worker',
        "    loss = model(batch, labels)",
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    ]
    verdict = triage(engine, ["-- Process 1 terminated with the following error:"], frames)
    root = verdict.root_cause
    assert root is not None
    assert (root.entry, root.rank, verdict.candidates) == ("cuda.oom", 1, ())
    assert {"announces-traceback"} <= decided()


def test_what_followed_from_the_cause_is_no_candidate(engine: Engine) -> None:
    oom = traceback("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", WAITING, "[rank1]: ")
    lost = traceback("RuntimeError: [pair.cc:553] Connection closed by peer [10.0.0.2]:2226", WAITING, "[rank0]: ")
    verdict = triage(engine, oom, lost)
    assert verdict.root_cause is not None
    assert verdict.root_cause.entry == "cuda.oom"
    assert [one.entry for one in verdict.cascades] == ["gloo.error"]
    assert "gloo.error" not in {one.entry for one in verdict.candidates}


def test_the_rank_without_a_watchdog_timeout_is_the_suspect(engine: Engine, decided: Callable[[], set[str]]) -> None:
    ranks = [watchdog(rank) for rank in (0, 1, 3)]
    root = triage(engine, BANNER, "world_size=4", steps(range(4)), ranks).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("nccl.timeout", 2)
    assert any("waited for rank 2" in reason for reason in root.reasons)
    assert {"others-waited-for-it"} <= decided()


@pytest.mark.parametrize(("spoke", "expected"), [((1, 2, 3, 5, 6, 7), True), ((0, 3, 5, 7), False)])
def test_few_gaps_show_whom_a_paste_that_names_no_size_waited_for(
    engine: Engine, spoke: tuple[int, ...], expected: bool
) -> None:
    root = triage(engine, [watchdog(rank) for rank in spoke]).root_cause
    assert root is not None
    assert root.rank is None
    assert any("waited for ranks 0,4" in reason for reason in root.reasons) == expected
    assert expected or not any("waited for" in reason for reason in root.reasons)


def test_the_rank_that_stopped_at_a_lower_number_is_the_suspect(engine: Engine) -> None:
    ranks = [watchdog(rank, 41 if rank == 3 else 78) for rank in range(4)]
    root = triage(engine, BANNER, steps(range(4)), ranks).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("nccl.timeout", 3)
    assert any("rank 3 stopped at collective 41, others at 78" in reason for reason in root.reasons)


def test_a_mismatch_is_named_with_both_sides_and_their_ranks(engine: Engine) -> None:
    ranks = [watchdog(0), watchdog(1), watchdog(2, operation="BROADCAST", size=8)]
    root = triage(engine, BANNER, steps(range(3)), ranks).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("collective.mismatch", 2)
    result = "ALLREDUCE 1024 (rank 0-1), BROADCAST 8 (rank 2)"
    assert any(result in reason for reason in root.reasons)
    assert {"Rank 0", "Rank 2"} <= {
        f"Rank {rank}" for rank in (0, 2) for line in root.evidence if f"[Rank {rank}]" in line.text
    }


def test_a_mismatch_that_torch_found_itself_is_named_with_both_sides(engine: Engine) -> None:
    raised = (
        "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint("
        "SequenceNumber=5, OpType=ALLREDUCE, TensorShape=[10], TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype=float)), "
        "but Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=5, OpType=BROADCAST)."
    )
    root = triage(engine, BANNER, traceback(raised, WAITING, "[rank1]: "), report((1, 1))).root_cause
    assert root is not None
    assert root.entry == "collective.mismatch"
    assert any("BROADCAST (rank 0), ALLREDUCE [10] (rank 1)" in reason for reason in root.reasons)


def test_the_desync_report_names_the_missing_rank(engine: Engine) -> None:
    desync = ["\t - [0] Timeout at collective: ALLREDUCE, #78",
              "\t - To our best knowledge, ranks [2] are the lagging ranks that caused this timeout. They never joined any collectives"]  # fmt: skip
    root = triage(engine, BANNER, steps(range(3)), watchdog(0), watchdog(1), desync).root_cause
    assert root is not None
    assert root.rank == 2


def test_the_rank_missing_from_the_store_based_barrier_failed(engine: Engine, decided: Callable[[], set[str]]) -> None:
    barrier = "Waiting in store based barrier to initialize process group for rank: 0, key: store_based_barrier_key:1 (world_size=2, worker_count=1, timeout=0:30:00)"
    raised = traceback("RuntimeError: CUDA error: invalid device ordinal")
    root = triage(engine, raised, barrier, barrier).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("cuda.invalid-ordinal", 1)
    assert {"others-waited-for-it"} <= decided()


@pytest.mark.parametrize(
    ("raised", "entry"),
    [
        ('s.isIntegral(false) INTERNAL ASSERT FAILED at "/b/aten/src/ATen/ScalarOps.h":39', "usage.python-error"),
        (
            'bucket_count == sizes.size() INTERNAL ASSERT FAILED at "../c10d/reducer.cpp":963',
            "ddp.unfinished-reduction",
        ),
    ],
)
def test_a_bare_internal_assert_is_explained(engine: Engine, raised: str, entry: str) -> None:
    root = triage(engine, traceback(f"RuntimeError: {raised}, please report a bug to PyTorch.")).root_cause
    assert root is not None
    assert root.entry == entry


def test_a_refusal_of_a_library_is_named_by_where_it_was_raised(engine: Engine) -> None:
    frames = [
        ("/job/train.py", 30, "main", "model = FSDP(model)"),
        ("/env/lib/python3.11/site-packages/torch/distributed/fsdp/_init_utils.py", 900, "_check", "raise ValueError("),
    ]
    root = triage(engine, traceback("ValueError: spindles must be aligned", frames)).root_cause
    assert root is not None
    assert (root.entry, root.confidence) == ("fsdp.error", "likely")


def test_a_traceback_wrapped_at_80_columns_keeps_exception_and_frames(engine: Engine) -> None:
    frames = [("/job/train.py", 30, "main", "loss = step(model, batch, optimizer, scaler, config, device, rank, verbose=True)"),
              ("/env/lib/python3.11/site-packages/torch/utils/data/_utils/very/long/path/worker.py", 12, "fetch", "get()")]  # fmt: skip
    lines = [part for line in traceback(OOM, frames) for part in (line[at : at + 80] for at in range(0, len(line), 80))]
    root = triage(engine, lines).root_cause
    assert root is not None
    assert root.entry == "cuda.oom"
    assert root.exception is not None
    assert [frame.function for frame in root.exception.frames] == ["main", "fetch"]


def test_an_operation_cut_off_at_the_end_of_its_line_is_not_an_other_operation(engine: Engine) -> None:
    cut = watchdog(1).partition("EDUCE")[0]
    assert cut.endswith("OpType=ALLR")
    root = triage(engine, BANNER, steps(range(2)), [watchdog(0), cut]).root_cause
    assert root is not None
    assert root.entry == "nccl.timeout"


@pytest.mark.parametrize("culprit", [1, 2])
@pytest.mark.parametrize("restarts", [0, 1])
def test_each_hosts_file_counts_its_own_attempts(engine: Engine, tmp_path: Path, culprit: int, restarts: int) -> None:
    """Each host has an agent of its own: that the first file's has ended its workers starts no attempt in the second."""
    waited = traceback("torch.distributed.DistBackendError: NCCL communicator was aborted on rank 0.")
    for host in (1, 2):
        said = traceback("KeyError: 'image'") if host == culprit else waited
        ends = [line for _ in range(restarts + 1) for line in [*said, agent(1, host - 1, 60 + host)]]
        (tmp_path / f"gpu-{host}.log").write_bytes(text(ends, report((host - 1, 1), host=f"gpu-{host}")))
    verdict = engine.triage(open_path(tmp_path))
    root = verdict.root_cause
    assert root is not None
    assert (root.entry, root.attempt, root.rank) == ("usage.python-error", 0, culprit - 1)
    assert verdict.run.attempts == restarts + 1


@pytest.mark.parametrize("expected", ["[pod/train-{}/main] ", "gpu-{}: "])
def test_each_host_of_a_merged_log_counts_its_own_attempts(engine: Engine, expected: str) -> None:
    waited = traceback(
        "torch.distributed.DistBackendError: NCCL communicator was aborted on rank 0.", prefix="[rank0]: "
    )
    lines: list[str] = []
    for host, said in ((1, waited), (2, traceback("KeyError: 'image'", prefix="[rank9]: "))):
        lines += [expected.format(host) + line for line in [*steps([host], count=5), *said, agent(1, 1, 60 + host)]]
    verdict = triage(engine, lines)
    root = verdict.root_cause
    assert root is not None
    assert (root.entry, root.attempt, root.rank, verdict.run.attempts) == ("usage.python-error", 0, 9, 1)


@pytest.mark.parametrize(
    "shell",
    [
        "train.sh: line 12: --learning_rate: command not found",
        "scripts/train.sh: line 31: torchrun: command not found",
        "./train.sh: 12: accelerate: not found",
    ],
)
def test_a_later_line_of_the_shell_script_is_no_cause(
    engine: Engine, shell: str, decided: Callable[[], set[str]]
) -> None:
    raised = traceback("KeyError: 'masks'")
    root = triage(engine, steps(range(1)), raised, shell).root_cause
    assert root is not None
    assert root.entry == "usage.python-error"
    assert {"script-went-on"} <= decided()
    hung = triage(engine, steps(range(1)), watchdog(3), shell).root_cause
    assert hung is not None
    assert "Watchdog" in hung.evidence[0].text


def test_a_lost_option_is_the_cause_when_no_step_was_trained(engine: Engine, decided: Callable[[], set[str]]) -> None:
    shell = "train.sh: line 12: --data_path: command not found"
    root = triage(engine, traceback("KeyError: 'data'"), shell).root_cause
    assert root is not None
    assert root.entry == "usage.config"
    above = triage(engine, shell, steps(range(1)), traceback("KeyError: 'data'")).root_cause
    assert above is not None
    assert above.entry == "usage.python-error"
    assert {"line-among-steps"} <= decided()


@pytest.mark.parametrize(
    "heading",
    [
        "Error in atexit._run_exitfuncs:",
        "Exception ignored in atexit callback: <function _exit_function at 0x7f2>",
        "Exception ignored while calling deallocator <function Run.__del__ at 0x7f2>:",
        "Exception ignored on threading shutdown <module 'threading' from '/usr/lib/python3.13/threading.py'>:",
        "Error in sys.excepthook:",
    ],
)
def test_an_error_at_exit_is_no_cause_when_an_exception_ended_the_program(
    engine: Engine, heading: str, decided: Callable[[], set[str]]
) -> None:
    frames = [("/env/lib/python3.11/site-packages/wandb/sdk/lib/mailbox.py", 120, "_wait", "raise MailboxError(text)")]
    late = [heading, *traceback("wandb.errors.MailboxError: transport failed", frames)]
    verdict = triage(engine, steps(range(1)), traceback("grid.GridError: tile 3 overlaps tile 4"), late)
    assert verdict.root_cause is not None
    assert "tile 3" in verdict.root_cause.evidence[0].text
    assert "logged-beside-uncaught" in decided() or not heading.startswith("Error in atexit")


def test_what_fails_at_the_end_counts_where_nothing_else_failed(engine: Engine) -> None:
    root = triage(engine, "Error in atexit._run_exitfuncs:", traceback(OOM)).root_cause
    assert root is not None
    assert root.entry == "cuda.oom"
