"""What a second look at a short log takes for a failure, and what it passes over."""

import pytest

from tests.logs import NO_FAILURE, text
from torchtriage.domain.verdict import Verdict
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes


def triage(engine: Engine, *parts: str | list[str]) -> Verdict:
    return engine.triage(from_bytes(text(*parts)))


@pytest.mark.parametrize(
    "line",
    [
        "INFO:jax._src.xla_bridge:Unable to initialize backend 'tpu': INTERNAL: Failed to open libtpu.so: libtpu.so: cannot open shared object file: No such file or directory",
        "I0104 23:49:02.451212 14001 xla_bridge.py:230] Unable to initialize backend 'tpu': INVALID_ARGUMENT: TpuPlatform is not available.",
        "E0912 11:54:57.366000 81 torch/_inductor/select_algorithm.py:2100] [7/0] Runtime error during autotuning: \nE0912 11:54:57.366000 81 torch/_inductor/select_algorithm.py:2100] [7/0] No valid triton configs. OutOfResources: out of resource: shared memory, Required: 131072, Hardware limit: 101376.",
        "WARNING 04-18 04:13:04 [store_connector.py:196] [rank0]: Failed to receive all states, redo model forwarding.",
        "Resolved instances: 144\nError instances: 16",
        "Successful requests:          5   \nFailed requests:              0   ",
        "bash: cannot set terminal process group (-1): Inappropriate ioctl for device\nbash: no job control in this shell",
        'time="2026-01-28T12:20:41Z" level=info msg="Not collecting metrics: Error getting them: not supported by this GPU"',
        'ERROR   controller-runtime.controller.pytorchjob-controller Reconciler error        {"name": "a", "error": "Operation cannot be fulfilled on pytorchjobs: the object has been modified; please apply your changes to the latest version and try again"}',
        "[W tensorpipe_agent.cpp:54] RPC agent for b encountered error when reading incoming request from a: EOF: end of file (this is expected to happen during shutdown)",
        "The attention mask is not set and cannot be inferred from input because pad token is same as eos token.As a consequence, you may observe unexpected behavior.",
    ],
    ids=["logger", "glog", "autotuning", "warning", "count", "table", "shell", "logfmt", "controller", "rpc", "hedged"],
)
def test_what_a_library_shows_in_passing_is_not_a_failure(engine: Engine, line: str) -> None:
    assert (
        triage(engine, line, "Loading checkpoint shards: 100%|████| 4/4 [00:02<00:00,  1.50it/s]").outcome in NO_FAILURE
    )


def test_an_exception_that_a_quiet_level_shows_is_still_read(engine: Engine) -> None:
    line = "2026-05-01 09:00:00,120 - trainer - INFO - torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    found = triage(engine, line).root_cause
    assert found is not None
    assert found.entry == "cuda.oom"


def test_all_lines_of_a_warning_of_pythons_are_passed_over(engine: Engine) -> None:
    warned = "/env/lib/python3.11/multiprocessing/popen_fork.py:66: RuntimeWarning: Using fork() can cause a deadlock."
    more = ["Forking is a way to crashes.", "", "The likely reason for this error is that fork() is the default.", ""]
    code = "  self.pid = os.fork()"
    assert triage(engine, "serving the data", warned, more, code).outcome in NO_FAILURE
    assert triage(engine, "serving the data", warned, more).outcome == "unexplained"
    assert triage(engine, warned, "ERROR: giving up", code, "serving the data").outcome == "unexplained"


def test_a_warning_of_pythons_names_no_cause(engine: Engine) -> None:
    line = "cannot load the image reader: libjpeg.so.8: cannot open shared object file: No such file or directory"
    code = "  warnings.warn(message)"
    assert triage(engine, f"/env/lib/python3.11/readers/image.py:13: UserWarning: {line}", code).outcome in NO_FAILURE
    assert triage(engine, f"warning: {line}").outcome in NO_FAILURE
    root = triage(engine, f"ImportError: {line}").root_cause
    assert root is not None
    assert root.entry == "env.shared-library"


def test_what_a_program_counts_in_a_list_is_not_a_failure(engine: Engine) -> None:
    listed = ["    [phase is too short] - 71", "    [range check failed] - 8"]
    line = "2026-05-01 09:00:00,120 - tensors:129 - {} - In epoch 1 these came up:"
    assert triage(engine, line.format("INFO"), listed, "2026-05-01 09:00:01,120 - next").outcome in NO_FAILURE
    assert triage(engine, line.format("ERROR"), listed, "2026-05-01 09:00:01,120 - next").outcome == "unexplained"
    assert triage(engine, line.format("INFO"), listed, "giving up: the upload failed").outcome == "unexplained"


def test_the_end_of_a_dump_of_pythons_shows_that_a_signal_ended_it(engine: Engine) -> None:
    thread = ["Thread 0x00007f38f17fa640 (most recent call first):", '  File "/env/lib/threading.py", line 320 in wait']
    modules = "Extension modules: numpy.core._multiarray_umath, torch._C, PIL._imaging (total: 261)"
    assert triage(engine, thread, "", "...", "", modules).outcome == "unexplained"


IGNORED = [
    "Exception ignored in: <bound method DataLoaderIter.__del__ of <torch.utils.data.dataloader.DataLoaderIter object>>",
    "Traceback (most recent call last):",
    '  File "/env/lib/python3.6/site-packages/torch/utils/data/dataloader.py", line 241, in __del__',
    '  File "/env/lib/python3.6/multiprocessing/reduction.py", line 49, in dumps',
]


@pytest.mark.parametrize(
    "raised",
    [
        "TypeError: 'NoneType' object is not callable",
        "ImportError: sys.meta_path is None, Python is likely shutting down",
        "RuntimeError: DataLoader worker (pid 311) is killed by signal: Aborted.",
    ],
)
def test_a_paste_of_what_python_ignored_shows_no_failure(engine: Engine, raised: str) -> None:
    assert triage(engine, IGNORED, raised).outcome in NO_FAILURE
    assert triage(engine, IGNORED, raised, IGNORED, raised).outcome in NO_FAILURE


def test_what_is_after_what_python_ignored_is_read(engine: Engine) -> None:
    found = triage(engine, IGNORED, "TypeError: gone", "RuntimeError: CUDA error: out of memory").root_cause
    assert found is not None
    assert found.entry == "cuda.oom"


def test_of_an_envelope_what_it_carries_is_read_again(engine: Engine) -> None:
    root = triage(
        engine, ["ray.exceptions.RayTaskError(ValueError): ray::main_task() (pid=77, ip=10.0.0.9)"]
    ).root_cause
    assert root is not None
    assert root.entry == "usage.python-error"


def test_a_line_of_a_warning_is_not_read_again_as_an_exception(engine: Engine) -> None:
    lines = [
        "2026-04-02 10:11:12,790 - mmdet - WARNING - The model and loaded state dict do not match exactly",
        "size mismatch for head.weight: copying a param with shape torch.Size([80, 8]) from checkpoint, the shape in "
        "current model is torch.Size([7, 8]).",
    ]
    continues = ["mmdet - INFO - Start running", "Hooks will be executed in this order:", "before_run:", "(LOW) Logger"]
    assert triage(engine, [*lines, *continues]).root_cause is None
    root = triage(engine, lines).root_cause
    assert root is not None
    assert root.entry == "checkpoint.size-mismatch"
    failed = "RuntimeError: Error(s) in loading state_dict for Net:"
    root = triage(engine, [lines[0], failed, f"\t{lines[1]}", *continues]).root_cause
    assert root is not None
    assert root.entry == "checkpoint.size-mismatch"


@pytest.mark.parametrize(
    "line",
    [
        "Error executing job with overrides: ['algorithm.adv_estimator=grpo', 'actor_rollout_ref.actor.ppo_mini_batch_size=64', 'trainer.n_gpus_per",
        "Namespace(config='sft.yaml', ppo_mini_batch_size=64, local_rank=0)\nRuntimeError",
    ],
    ids=["hydra", "argparse"],
)
def test_what_was_asked_for_is_not_a_message(engine: Engine, line: str) -> None:
    root = triage(engine, "After an hour my job fails:\n\n" + line).root_cause

    assert root is None or root.entry in (None, "elastic.child-failed")  # Hydra only reports that the job failed


def test_an_environment_without_a_revision_is_not_a_failure(engine: Engine) -> None:
    verdict = triage(
        engine,
        "torch        : 2.8.0\nError running git command: fatal: detected dubious ownership in repository at '/work/rl'\nCommit Hash  : None",
    )

    assert verdict.outcome in NO_FAILURE


HISTORIES = {
    "git log --oneline": [
        "9ef47b2 Fix RuntimeError: CUDA out of memory in the evaluation loop",
        "3a2fd5d Handle RuntimeError: NCCL error: unhandled system error",
        "2b2c92f Bump version to 1.4",
    ],
    "git log --graph": [
        "* 5e1f0ab (HEAD -> main) loader: skip samples that raise OSError: image file is truncated (4 bytes not processed)",
        "*   a91ce02 Merge branch 'workers'",
        "|\\",
        "| * 70ab3d1 RuntimeError: DataLoader worker (pid 12) is killed by signal: Killed.",
    ],
    "a changelog": [
        "## 2.3.1",
        "- Fixed `RuntimeError: Expected all tensors to be on the same device, but found cuda:0 and cpu!` (#412)",
        "- Added a trainer",
    ],
}


@pytest.mark.parametrize("lines", HISTORIES.values(), ids=HISTORIES)
def test_a_list_of_changes_quotes_errors_that_were_fixed(engine: Engine, lines: list[str]) -> None:
    verdict = triage(engine, *lines)
    assert (verdict.outcome, verdict.root_cause) == ("inconclusive", None)


def test_a_run_that_shows_its_commit_fails_all_the_same(engine: Engine) -> None:
    lines = [
        "3a2fd5d Handle a timeout",
        "epoch 1 loss 2.1",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
    ]
    root = triage(engine, *lines).root_cause
    assert root is not None
    assert root.entry == "cuda.oom"
