"""Numbers of an outer launcher's tasks: ranks where each task is a worker, nodes where each is a launcher."""

from collections.abc import Callable

import pytest

from tests.engine.test_engine import triage
from tests.logs import BANNER, PEER_CLOSED, WAITING, agent, report, traceback
from torchtriage.engine import Engine

Label = Callable[[int], str]
KEY = "KeyError: 'image'"
LABELS: dict[str, Label] = {
    "srun -l": lambda task: f"{task}: ",
    "mpirun --tag-output": lambda task: f"[1,{task}]<stdout>:",
    "mpiexec -prepend-rank": lambda task: f"[{task}] ",
}


def with_label(label: Label, task: int, lines: list[str] | str) -> list[str]:
    return [label(task) + line for line in ([lines] if isinstance(lines, str) else lines)]


def progress(label: Label) -> list[str]:
    return [f"{label(task)}step {step} loss {1 / (step + 1):.3f}" for step in range(20) for task in range(2)]


@pytest.fixture(params=LABELS)
def label(request: pytest.FixtureRequest) -> Label:
    return LABELS[request.param]


@pytest.mark.parametrize("banner", [True, False])
def test_a_task_that_is_a_launcher_is_not_a_rank(engine: Engine, label: Label, banner: bool) -> None:
    begin = with_label(label, 0, BANNER) + with_label(label, 1, BANNER) if banner else []
    end = with_label(label, 1, agent(1, 2)) + with_label(label, 1, report((6, 1)))
    root = triage(engine, begin, progress(label), with_label(label, 1, traceback(KEY)), end).root_cause
    assert root is not None
    assert (root.entry, root.rank, root.host) == ("usage.python-error", 6, "gpu-7")


def test_without_the_report_a_node_shows_no_rank(engine: Engine, label: Label) -> None:
    root = triage(
        engine, progress(label), with_label(label, 1, traceback(KEY)), with_label(label, 1, agent(1, 2))
    ).root_cause
    assert root is not None
    assert root.rank is None
    assert not any("rank 1" in reason for reason in root.reasons)


def test_the_workers_own_label_counts(engine: Engine, label: Label) -> None:
    failed = with_label(label, 0, traceback(PEER_CLOSED, WAITING, "[rank0]: ")) + with_label(
        label, 1, traceback(KEY, prefix="[rank6]: ")
    )
    root = triage(engine, progress(label), failed, with_label(label, 1, agent(1, 2))).root_cause
    assert root is not None
    assert root.rank == 6


def test_torchruns_label_within_that_of_a_task(engine: Engine, label: Label) -> None:
    failed = with_label(label, 1, traceback(KEY, prefix="[default2]:"))
    listed = [line.replace("local_rank: 6", "local_rank: 2") for line in report((6, 1))]
    verdict = triage(engine, progress(label), failed, with_label(label, 1, agent(1, 2)), with_label(label, 1, listed))
    assert verdict.root_cause is not None
    assert verdict.root_cause.rank == 6
    assert all(cascade.entry for cascade in verdict.cascades)


def test_a_task_without_a_launcher_is_a_rank(engine: Engine, label: Label) -> None:
    root = triage(engine, progress(label), with_label(label, 1, traceback(KEY))).root_cause
    assert root is not None
    assert root.rank == 1


@pytest.mark.parametrize(
    ("said", "rank"),
    [
        (["srun: error: gpu-3: task 3: Exited with exit code 1"], 3),
        (["srun: error: gpu-3: task 3: Exited with exit code 1", "srun: error: gpu-0: tasks 0-2: Terminated"], 3),
        (["srun: error: gpu-3: tasks 2-3: Exited with exit code 1"], None),
    ],
)
def test_srun_shows_whose_traceback_it_is(engine: Engine, said: list[str], rank: int | None) -> None:
    steps = [f"step {step} loss 0.5" for step in range(20)]
    root = triage(engine, steps, traceback(KEY), said).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("usage.python-error", rank)


def test_srun_shows_no_rank_of_a_launchers_worker(engine: Engine) -> None:
    steps = [f"step {step} loss 0.5" for step in range(20)]
    root = triage(
        engine, BANNER, steps, traceback(KEY), "srun: error: gpu-3: task 3: Exited with exit code 1"
    ).root_cause
    assert root is not None
    assert root.rank is None


def test_srun_shows_which_task_ran_out_of_memory(engine: Engine) -> None:
    steps = [f"[rank {rank}] step {step} loss 0.5" for step in range(9) for rank in range(4)]
    said = ["slurmstepd: error: Detected 1 oom_kill event in StepId=12.0. Some of the step tasks have been OOM Killed.",
            "srun: error: gpu-3: task 3: Out Of Memory"]  # fmt: skip
    root = triage(engine, steps, traceback(PEER_CLOSED, WAITING, "[rank0]: "), said).root_cause
    assert root is not None
    assert (root.entry, root.rank, root.host) == ("slurm.oom", 3, "gpu-3")


@pytest.mark.parametrize(("workers", "rank"), [(1, 1), (8, None)])
def test_a_launcher_of_one_worker_has_that_workers_rank(engine: Engine, workers: int, rank: int | None) -> None:
    label = LABELS["srun -l"]
    begun = f"+ srun -l torchrun --nnodes=2 --nproc_per_node={workers} train.py"
    root = triage(
        engine, begun, progress(label), with_label(label, 1, traceback(KEY)), with_label(label, 1, agent(1, 0))
    ).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("usage.python-error", rank)


def test_a_task_that_was_killed_is_why_srun_ended_its_step(engine: Engine) -> None:
    told_by_srun = [
        "srun: error: gpu-7: task 0: Killed",
        "srun: launch/slurm: _step_signal: Terminating StepId=8.0",
        "slurmstepd-gpu-7: error: *** STEP 8.0 ON gpu-7 CANCELLED AT 2026-05-01T09:00:00 ***",
        "srun: error: gpu-7: task 1: Terminated",
        "srun: Force Terminated StepId=8.0",
    ]
    failed = traceback(PEER_CLOSED, WAITING, "[rank1]: ")
    root = triage(engine, progress(lambda _: ""), failed, told_by_srun).root_cause
    assert root is not None
    assert (root.entry, root.rank) == ("process.oom-killed", 0)
    cancelled = triage(engine, progress(lambda _: ""), [*told_by_srun[2:3], *told_by_srun[:1]]).root_cause
    assert cancelled is not None
    assert cancelled.entry == "slurm.cancelled"
