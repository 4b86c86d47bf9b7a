"""What launchers and schedulers say of processes that they started: who left first, who was waited for, what it means."""

from collections.abc import Callable

import pytest

from tests.engine.test_engine import triage
from tests.logs import steps
from torchtriage.engine import Engine

STALLED = (
    "[2026-05-01 09:00:00.1: W /build/horovod/common/stall_inspector.cc:107] One or more tensors were submitted to be reduced, "
    "gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more than 60 seconds."
)
SHUT_DOWN = "RuntimeError: Horovod has been shut down. This was caused by an exception on one of the ranks or an attempt to allreduce"
FIRST = [
    "mpirun detected that one or more processes exited with non-zero status, thus causing",
    "the job to be terminated. The first process to do so was:",
    "",
    "  Process name: [[50371,1],0]",
    "  Exit code:    1",
]
# The whole help text of PRRTE is longer than the short pastes that need not speak of training.
NO_SLOTS = [
    "-" * 74,
    "There are not enough slots available in the system to satisfy the 4",
    "slots that were requested by the application:",
    "",
    "  python",
    "",
    "Either request fewer procs for your application, or make more slots",
    "available for use.",
    "",
    *(f"  {number}. This help text names one more place that says how many slots there are." for number in range(1, 9)),
    "-" * 74,
]
YARN = [
    "26/05/01 09:00:00 INFO dmlc.ApplicationMaster: [DMLC] Task 2 exited with status 1 Diagnostics:Exception from container-launch.",
    "Container id: container_1_01_000004",
    "Exit code: 1",
    "Stack trace: ExitCodeException exitCode=1: ",
    "\tat org.apache.hadoop.util.Shell.runCommand(Shell.java:582)",
    "\tat java.util.concurrent.FutureTask.run(FutureTask.java:266)",
]


def place(engine: Engine, *lines: str) -> tuple[str | None, int | None]:
    root = triage(engine, *lines).root_cause
    assert root is not None
    return root.entry, root.rank


def test_the_rank_that_horovods_coordinator_waits_for_is_the_suspect(engine: Engine) -> None:
    lines = [STALLED, "Missing ranks:", "3: [allreduce.conv.weight]"]
    assert place(engine, *(f"[1,0]<stderr>:{line}" for line in lines)) == ("collective.mismatch", 3)


def test_a_run_is_stalled_until_a_step_follows(engine: Engine, decided: Callable[[], set[str]]) -> None:
    trained = [*steps(range(5)), STALLED]
    assert place(engine, *trained)[0] == "collective.mismatch"
    assert {"stalled"} <= decided()
    assert triage(engine, *trained, *steps(range(5, 9))).outcome == "healthy"
    assert triage(engine, *trained, "training finished").outcome == "healthy"


def test_a_rank_that_lost_its_peers_did_not_exit_first(engine: Engine, decided: Callable[[], set[str]]) -> None:
    entry, rank = place(engine, f"[1,1]<stderr>:{SHUT_DOWN}", "-" * 74, *FIRST)
    assert (entry, rank) == ("mpi.error", 0)
    assert {"parent-saw-it-leave"} <= decided()


def test_what_mpirun_says_of_its_own_job_counts_in_any_log(engine: Engine) -> None:
    verdict = triage(engine, *NO_SLOTS)
    assert (verdict.outcome, place(engine, *NO_SLOTS)[0]) == ("explained", "mpi.error")
    assert verdict.answer is not None
    assert "asked for 4 processes" in verdict.answer.says


def test_yarn_says_which_task_left(engine: Engine) -> None:
    assert place(engine, *YARN) == ("elastic.child-failed", 2)


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        ("Diagnostics: Container killed by YARN for exceeding memory limits. 33.1 GB of 32 GB physical memory used.", "slurm.oom"),
        ("2.1s: job.exception: type=timeout severity=0 resource allocation expired", "slurm.time-limit"),
        ("2.1s: job.exception: type=node-failure severity=0 lost contact with job shell on gpu-21 (shell rank 3)", "slurm.node-fail"),
        ("|main|gpu-07|W|job 4410231.1 exceeded hard wallclock time - initiate terminate method", "slurm.time-limit"),
        ('job 41 exceeds job hard limit "h_vmem" of queue "gpu.q@gpu-07" (66571993088.0 > limit:64424509440.0) - sending SIGKILL', "slurm.oom"),
        ("May 01 09:00:00 head-1 slurmctld[2210]: fatal: CLUSTER NAME MISMATCH.", "slurm.daemon"),
        ("[2026-05-01T09:00:00.500] fatal: mkdir(/var/spool/slurm/ctld): No such file or directory", "slurm.daemon"),
        ("The replica workerpool0-1 exited with a non-zero status of 1. Termination reason: Error.", "elastic.child-failed"),
        ("RuntimeError: Error (burn.cpp:298): system not yet initialized", "cuda.init-error"),
        ("  Normal   Killing    2m  kubelet  Container trainer failed liveness probe, will be restarted", "k8s.probe"),
        ("[2026-05-01T09:00:00.500] Time limit exhausted for JobId=12345", "slurm.time-limit"),
        ("[2026-05-01T09:00:00.500] error: Nodes gpu-[1-2] not responding", "slurm.node-fail"),
        ("bond0: (slave ens1f0): link status definitely down, disabling slave", "network.link-flap"),
        ("mlx5_core 0000:3b:00.0: poll_health:800:(pid 0): Fatal error 3 detected", "network.nic-down"),
        ("Error for Training job bert-7: Failed. Reason: AlgorithmError: ExecuteUserScriptError:", "elastic.child-failed"),
        ("  6%|▌         | 3787/62565 [04:47<1:10:53, 13.82it/s]Killed", "process.oom-killed"),
        ("**Killed**", "process.oom-killed"),
        ("/mnt/data: Transport endpoint is not connected", "storage.mount"),
        ("NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) returned", "cuda.gsp"),
        ("MountVolume.SetUp failed for volume \"conf\" : configmap \"trainer-conf\" not found", "k8s.image"),
        ("xe 0000:3a:00.0: [drm] GT0: Engine reset: engine_class=ccs, logical_mask: 0x1, guc_id=7", "accelerator.runtime-error"),
        ("2026-Mar-02 08:14:55.4 58102:58102 ERROR   NRT:nrt_init     Failed to initialize devices, error:1", "accelerator.init-failed"),
        ("*** SIGABRT received by PID 4711 (TID 4711) on cpu 40 from PID 4711; stack trace: ***", "process.sigabrt"),
    ],
)  # fmt: skip
def test_what_one_line_of_theirs_means(engine: Engine, line: str, entry: str) -> None:
    root = triage(engine, line).root_cause
    assert root is not None
    assert root.entry == entry


def test_a_level_is_not_a_host(engine: Engine) -> None:
    lines = [
        f"May 01 09:00:00 head-1 slurmctld[2210]: error: Duplicated NodeHostName gpu-{n} in the config file"
        for n in range(6)
    ]
    root = triage(
        engine, *lines, "May 01 09:00:00 head-1 slurmctld[2210]: fatal: Duplicated NodeHostName gpu-0 in config file"
    ).root_cause
    assert root is not None
    assert root.entry == "slurm.daemon"
    assert root.host in (None, "head-1")
