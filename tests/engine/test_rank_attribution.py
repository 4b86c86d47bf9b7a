"""Which rank a failure belongs to, where its own lines have no rank prefix."""

from collections.abc import Callable

import pytest

from tests.logs import BANNER, PEER_CLOSED, WAITING, agent, report, steps, text, traceback
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

KEY = "KeyError: 'image'"
MISSING = "FileNotFoundError: [Errno 2] No such file or directory: '/ckpt/step_75/model_world_size_4_rank_2.pt'"
SPAWNED = "-- Process 3 terminated with the following error:"
LAUNCHED = "subprocess.CalledProcessError: Command '['python', '-u', 'train.py', '--local_rank={}']' returned non-zero exit status 1."


@pytest.mark.parametrize(
    ("parts", "rank"),
    [
        ([traceback(KEY)], None),
        ([SPAWNED, traceback(KEY)], 3),
        (["# ProcessExitedException: process 2 terminated with signal SIGABRT"], 2),
        ([[f"[gpu-7:{rank}] step 1" for rank in range(2)], traceback(KEY, prefix="[gpu-7:1] ")], 1),
        (["world_size=64", traceback(KEY, prefix="[default1]:")], None),
        ([f"the error is `[rank5]: {KEY}`"], 5),
        ([[f"[Rank 12] 2026-05-01 step {step}" for step in range(3)], traceback(KEY)], 12),
        ([[f"[Rank 0] 2026-05-01 step {step}" for step in range(3)], traceback(KEY)], None),
        ([traceback(KEY), LAUNCHED.format(0)], 0),
        ([traceback(KEY), LAUNCHED.format(3)], None),
        ([traceback(MISSING)], 2),
        (["[2026-05-01 09:00:00,100] [ERROR] [run.load:80] [PID:71] [RANK:5] cannot load", traceback(KEY)], 5),
        (
            [
                [f"[2026-05-01 09:00:00,100] [INFO] [run.load:80] [RANK:{rank}] loading" for rank in (2, 5)],
                traceback(KEY),
            ],
            None,
        ),
        (["Exception in device=TPU:6: xla/xla_client/client.cc:421 : Check failed: session->Run()"], 6),
        ([traceback(KEY), "ABORT!!! Out of all 8 trainers, the trainer process with rank=[6] was aborted."], 6),
    ],
)
def test_the_rank_is_named_only_when_the_log_shows_it(
    engine: Engine, parts: list[str | list[str]], rank: int | None, decided: Callable[[], set[str]]
) -> None:
    root = engine.triage(from_bytes(text(*parts))).root_cause
    assert root is not None
    assert root.rank == rank
    assert ("only-rank-of-the-log" in decided()) is (rank in (0, 12))


@pytest.mark.parametrize(("others", "rank"), [((), 1), (((3, 1),), 3)])
def test_a_workers_own_exception_inside_the_report_is_read(
    engine: Engine, others: tuple[tuple[int, int], ...], rank: int
) -> None:
    """The exception is of the rank whose item of the report holds it, be it the report's first failure or another."""
    lines = report((1, 1), others)
    at = next(number for number, line in enumerate(lines) if line.startswith("  traceback :"))
    lines[at : at + 1] = ["  traceback : Traceback (most recent call last):",
                          '    File "/job/train.py", line 30, in main', "      step()", f"  {KEY}"]  # fmt: skip
    root = engine.triage(from_bytes(text(lines))).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("usage.python-error", rank)


OOM_STEP = (
    "slurmstepd: error: Detected 1 oom_kill event in StepId=81234.0. Some of the step tasks have been OOM Killed."
)


def test_the_rank_killed_for_its_memory_is_read_from_the_launchers_report(
    engine: Engine, decided: Callable[[], set[str]]
) -> None:
    padding = [f"reading shard {number}" for number in range(400)]  # no paste any more
    for others, place in (([(0, -15)], (2, 2, "gpu-7")), ([(0, -9)], (None, None, None))):
        root = engine.triage(from_bytes(text(padding, agent(-9, 2), report((2, -9), others), OOM_STEP))).root_cause
        assert root is not None
        assert root.entry == "slurm.oom"
        assert (root.rank, root.local_rank, root.host) == place
    assert {"only-one-killed"} <= decided()


def test_the_report_shows_local_rank_and_host_of_a_rank_that_wrote_its_own_traceback(engine: Engine) -> None:
    root = engine.triage(from_bytes(text(traceback(KEY, prefix="[rank3]: "), report((0, 1), [(3, 1)])))).root_cause
    assert root is not None
    assert (root.rank, root.local_rank, root.host) == (3, 3, "gpu-7")


def test_the_rank_is_read_from_a_line_with_the_same_exception(engine: Engine, decided: Callable[[], set[str]]) -> None:
    left = traceback(PEER_CLOSED, prefix="[rank1]: ")
    root = engine.triage(from_bytes(text(steps(range(3)), traceback(KEY), f"[rank3]: {KEY}", left))).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("usage.python-error", 3)
    assert {"same-on-one-rank"} <= decided()


def test_the_rank_is_read_from_code_that_only_one_rank_runs(engine: Engine, decided: Callable[[], set[str]]) -> None:
    guarded = ("/job/train.py", 12, "save", "torch.save(model, path) if rank == 0 else None")
    either = ("/job/train.py", 12, "save", "save(model) if rank == 0 else wait()")
    for frame, rank in ((guarded, 0), (either, None)):
        root = engine.triage(from_bytes(text(traceback("KeyError: 'image'", [frame])))).root_cause
        assert root is not None
        assert root.rank == rank
    assert {"guarded-code"} <= decided()


def test_the_host_of_a_small_run_is_the_only_one_named(engine: Engine) -> None:
    raised = traceback("KeyError: 'image'")
    named = "gpu-7:41:77 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.7<0>"
    for size, host in (("world_size=8", "gpu-7"), ("world_size=64", None), ("step 1 loss 0.5", None)):
        root = engine.triage(from_bytes(text(size, named, raised))).root_cause
        assert root is not None
        assert root.host == host


def test_an_exception_that_ray_carried_over_was_raised_on_the_host_that_its_envelope_names(engine: Engine) -> None:
    envelope = traceback("ray.exceptions.RayTaskError(KeyError): ray::Trainer.fit() (pid=71, ip=10.0.0.3)")
    root = engine.triage(from_bytes(text(envelope, '  File "/job/train.py", line 9, in fit', KEY))).root_cause
    assert root is not None
    assert root.host == "10.0.0.3"


def test_of_workers_that_were_all_stopped_the_first_observed_is_reported_with_its_own_lines(engine: Engine) -> None:
    stopped = report((3, -15), [(0, -15), (1, -15)])
    for before in ([], [BANNER, *steps(range(4)), agent(-15, local_rank=3, pid=73)]):
        root = engine.triage(from_bytes(text(before, stopped))).root_cause
        assert root is not None
        assert (root.entry, root.rank) == ("elastic.sigterm", 3)
        lines = [line.text for line in root.evidence]
        assert any("pid: 73" in line for line in lines)
        assert not any("pid: 70" in line or "pid: 71" in line for line in lines)


def test_the_launchers_exception_has_the_rank_that_its_report_names(engine: Engine) -> None:
    launch = '  File "/opt/torch/distributed/launcher/api.py", line 270, in launch_agent\n    raise ChildFailedError('
    raised = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "
    root = engine.triage(from_bytes(text([*launch.split("\n"), raised], report((5, 1))))).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("elastic.child-failed", 5)


@pytest.mark.parametrize(("number", "entry"), [(15, "elastic.sigterm"), (1, "elastic.sighup")])
def test_a_signal_that_the_agent_received_is_not_a_ranks_failure(engine: Engine, number: int, entry: str) -> None:
    parts: list[str | list[str]] = [
        BANNER,
        [f"[rank3]: step {step}" for step in range(3)],
        f"WARNING:torch.distributed.elastic.agent.server.api:Received {number} death signal, shutting down workers",
        agent(-15),
        traceback(f"torch.distributed.elastic.multiprocessing.api.SignalException: Process 4100 got signal: {number}"),
    ]
    root = engine.triage(from_bytes(text(*parts))).root_cause
    assert root is not None
    assert (root.entry, root.rank) == (entry, None)


def test_a_rank_that_lost_its_peer_is_not_the_one_that_aborted(engine: Engine) -> None:
    terminated = ["terminate called after throwing an instance of 'std::runtime_error'", "  what():  bad header"]
    root = engine.triage(from_bytes(text(BANNER, terminated, traceback(PEER_CLOSED, WAITING, "[rank1]: ")))).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("process.sigabrt", None)


def test_the_rank_is_read_from_another_report_of_the_same_cause(
    engine: Engine, decided: Callable[[], set[str]]
) -> None:
    lines = [
        "gpu-7:99:301 [0] misc/ibvwrap.cc:190 NCCL WARN Call to ibv_create_cq failed with error Cannot allocate memory",
        "[rank4]: Call to ibv_create_cq failed with error Cannot allocate memory errno 12",
    ]
    for others in ([], steps((4, 5))):
        root = engine.triage(from_bytes(text(BANNER, others, lines))).root_cause
        assert root is not None
        assert (root.entry, root.rank) == ("nccl.ib", 4)
    assert {"same-cause-in-other-words"} <= decided()


DUPLICATE = "Duplicate GPU detected : rank 3 and rank 1 both on CUDA device 81000"
WARNED = f"[2026-05-01 09:00:00] gpu-7:812:990 [1] init.cc:943 NCCL WARN {DUPLICATE}"
INVALID = (
    "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1207, "
    f"invalid usage, NCCL version 2.27.3\nncclInvalidUsage: This usually reflects invalid usage.\nLast error:\n{DUPLICATE}"
)


def test_the_host_of_nccls_warning_is_that_of_the_exception_next_to_it(engine: Engine) -> None:
    root = engine.triage(from_bytes(text(WARNED, traceback(INVALID, prefix="[rank3]: ")))).root_cause
    assert root is not None
    assert (root.entry, root.rank, root.host) == ("nccl.invalid-usage", 3, "gpu-7")


def test_the_hosts_of_many_warnings_show_none(engine: Engine) -> None:
    both = [WARNED, WARNED.replace("gpu-7", "gpu-8")]
    root = engine.triage(from_bytes(text(both, traceback(INVALID, prefix="[rank3]: ")))).root_cause
    assert root is not None
    assert root.host is None


def test_the_rank_of_an_nccl_warning_is_read_from_its_communicator(
    engine: Engine, decided: Callable[[], set[str]]
) -> None:
    joined = [f"gpu-7:{810 + rank}:990 [{rank}] NCCL INFO comm 0x55d96 rank {rank} nranks 4 cudaDev {rank} - Init COMPLETE"
              for rank in range(4)]  # fmt: skip
    warned = "gpu-7:812:990 [2] include/alloc.h:178 NCCL WARN Cuda failure 2 'out of memory'"
    root = engine.triage(from_bytes(text(joined, warned))).root_cause
    assert root is not None
    assert (root.entry, root.rank, root.host) == ("cuda.oom", 2, "gpu-7")
    assert {"nccl-communicator"} <= decided()


@pytest.mark.parametrize(
    ("said", "left", "place"),
    [
        ("execve(): ./train.sh: Permission denied", "gpu-3: task 5: Exited with exit code 13", (5, "gpu-3")),
        ("pyxis: couldn't start container", "gpu-3: task 5: Exited with exit code 1", (5, "gpu-3")),
        ("pyxis: couldn't start container", "gpu-3: tasks 0-7: Exited with exit code 1", (None, "gpu-3")),
    ],
)
def test_the_rank_is_the_task_that_srun_reports_when_it_could_not_start(
    engine: Engine,
    said: str,
    left: str,
    place: tuple[int | None, str],
    decided: Callable[[], set[str]],
) -> None:
    root = engine.triage(from_bytes(text(f"slurmstepd: error: {said}", f"srun: error: {left}"))).root_cause
    assert root is not None
    assert (root.rank, root.host) == place
    assert "task-left-first" in decided() or "pyxis" not in said or place[0] is None


def test_sruns_word_on_the_task_that_crashed_first_shows_rank_and_host(engine: Engine) -> None:
    left = ["srun: error: gpu-1: task 5: Aborted", "srun: error: gpu-2: task 9: Exited with exit code 1"]
    root = engine.triage(from_bytes(text(steps([0]), "malloc_consolidate(): invalid chunk size", left))).root_cause
    assert root is not None
    assert (root.rank, root.host) == (5, "gpu-1")
