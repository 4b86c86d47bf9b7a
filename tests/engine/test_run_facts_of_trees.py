"""The facts of runs whose logs lie in several files: torchrun's tree, rotated logs, folders of Slurm's."""

import gzip
import json
from pathlib import Path

import pytest

from tests.logs import PEER_CLOSED, WAITING, text, traceback
from torchtriage.domain.verdict import Verdict
from torchtriage.engine import Engine
from torchtriage.reading.sources import open_path

RAISED = "KeyError: 'image'"
LOST = [(file, line, function, code) for file, line, function, code in WAITING]


def error_file(raised: str, at: int) -> bytes:
    """Returns torchelastic's copy of an exception, written `at` seconds since 1970."""
    stack = "\n".join([*traceback(raised), ""])
    return json.dumps(
        {"message": {"message": raised, "extraInfo": {"py_callstack": stack, "timestamp": str(at)}}}
    ).encode()


def tree(root: str, attempt: int, local: int, rank: int, at: int, culprit: bool) -> dict[str, bytes]:
    """Returns the files of one worker, which trained before it failed; torch writes no times into them."""
    folder = f"{root}/attempt_{attempt}/{local}"
    raised = traceback(RAISED) if culprit else traceback(PEER_CLOSED, LOST)
    return {
        f"{folder}/stdout.log": text("Loading weights", [f"step {step} loss 0.5" for step in range(6)]),
        f"{folder}/stderr.log": text([f"[rank{rank}]: {line}" for line in raised]),
        f"{folder}/error.json": error_file(RAISED if culprit else PEER_CLOSED, at),
    }


def spread(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def test_a_tree_shows_launcher_phase_and_the_time_of_the_failure(engine: Engine, tmp_path: Path) -> None:
    files = tree("none_x1", 0, 0, 0, 1777626009, culprit=False) | tree("none_x1", 0, 1, 1, 1777626000, culprit=True)
    verdict = engine.triage(open_path(spread(tmp_path, files)))
    root, run = verdict.root_cause, verdict.run
    assert root is not None
    assert (root.rank, root.time) == (1, "2026-05-01T09:00:00Z")
    assert (run.launcher, run.phase, run.step, run.seconds_after_failure) == ("torchrun", "train", 5, 9.0)
    assert (run.started, run.ended) == ("2026-05-01T09:00:00Z", "2026-05-01T09:00:09Z")


def test_a_tree_of_two_hosts_has_the_ranks_that_its_lines_name(engine: Engine, tmp_path: Path) -> None:
    files: dict[str, bytes] = {}
    for rank in range(4):
        root = f"gpu-{7 + rank // 2}/none_x{rank // 2}"
        files |= tree(root, 0, rank % 2, rank, 1777626000 + (rank != 3), culprit=rank == 3)
    verdict = engine.triage(open_path(spread(tmp_path, files)))
    root_cause, run = verdict.root_cause, verdict.run
    assert root_cause is not None
    assert (root_cause.rank, root_cause.local_rank, root_cause.host) == (3, 1, "gpu-8")
    assert (root_cause.time, run.seconds_after_failure) == ("2026-05-01T09:00:00Z", 1.0)
    assert run.hosts == ("gpu-7", "gpu-8")


def test_the_phase_of_a_killed_rank_is_that_of_its_folder(engine: Engine, tmp_path: Path) -> None:
    files = {
        "none_x1/attempt_0/0/stdout.log": text("step 1 loss 0.5"),
        "none_x1/attempt_0/1/stdout.log": text("step 1 loss 0.5", "Saving checkpoint to out"),
        "launcher.log": text("E0501 09:10:00.200000 41 torch/distributed/elastic/multiprocessing/api.py:1002] failed "
                             "(exitcode: -9) local_rank: 1 (pid: 71) of binary: /usr/bin/python3"),
    }  # fmt: skip
    assert engine.triage(open_path(spread(tmp_path, files))).run.phase == "save"


def dated(engine: Engine, tmp_path: Path, *lines: str | list[str]) -> Verdict:
    (tmp_path / "train.log").write_bytes(text(*lines))
    return engine.triage(open_path(tmp_path / "train.log"))


def test_an_undated_traceback_has_the_time_of_the_line_above_it(engine: Engine, tmp_path: Path) -> None:
    deep = [("/job/train.py", 30 + at, f"step_{at}", "go()") for at in range(30)]
    verdict = dated(engine, tmp_path, "2026-05-01 09:00:00,000 INFO step 1", "2026-05-01 09:01:00,500 ERROR step failed",
                    traceback(RAISED, deep), "2026-05-01 09:01:02,500 INFO bye")  # fmt: skip
    assert verdict.root_cause is not None
    assert verdict.root_cause.time == "2026-05-01T09:01:00.500"
    assert verdict.run.seconds_after_failure == 2.0


def test_a_time_far_above_says_nothing_of_the_failure(engine: Engine, tmp_path: Path) -> None:
    verdict = dated(
        engine, tmp_path, "2026-05-01 09:00:00,000 INFO step 1", ["waiting for data"] * 9, traceback(RAISED)
    )
    assert verdict.root_cause is not None
    assert verdict.root_cause.time is None


def test_a_rotated_log_is_read_as_one(engine: Engine, tmp_path: Path) -> None:
    retried = traceback("TimeoutError: no answer", [("/job/data.py", 3, "fetch", "get()")])
    files = {
        "train.log.2.gz": gzip.compress(text([f"step {at} loss 0.5" for at in range(20)], retried[:-1])),
        "train.log.1": text(retried[-1], [f"step {at} loss 0.5" for at in range(20, 90)]),
        "train.log": text([f"step {at} loss 0.5" for at in range(90, 150)], traceback(RAISED)),
    }
    verdict = engine.triage(open_path(spread(tmp_path, files)))
    assert verdict.root_cause is not None
    shown = verdict.root_cause.evidence[0]
    assert (shown.file, shown.line, verdict.run.step) == ("train.log", 64, 149)
    assert RAISED in shown.text


@pytest.mark.parametrize("line", ["srun: error: gpu[001-002]: tasks 0-3: Exited with exit code 1", "SLURM_JOB_NODELIST=gpu[001-002]"])  # fmt: skip
def test_the_hosts_of_a_node_list(engine: Engine, tmp_path: Path, line: str) -> None:
    assert dated(engine, tmp_path, "step 1 loss 0.5", traceback(RAISED), line).run.hosts == ("gpu001", "gpu002")


def test_srun_shows_on_which_host_a_rank_ran(engine: Engine, tmp_path: Path) -> None:
    raised = [f"3: {line}" for line in traceback(RAISED)]
    steps = [f"{rank}: step {step} loss 0.5" for step in range(5) for rank in range(4)]
    verdict = dated(engine, tmp_path, steps, raised, "srun: error: gpu002: tasks 2-3: Exited with exit code 1")
    assert verdict.root_cause is not None
    assert (verdict.root_cause.rank, verdict.root_cause.host) == (3, "gpu002")
