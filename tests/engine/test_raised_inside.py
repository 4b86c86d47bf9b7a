"""Errors that torch raises in a part of its own, which tells the cause where the message alone does not."""

import pytest

from tests.logs import text, traceback
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

SITE = "/env/lib/python3.12/site-packages"
MAIN = ("/job/train.py", 30, "<module>", "main()")


def cause(engine: Engine, last: str, *frame: object) -> str | None:
    file, function, code = frame
    trace = traceback(last, [MAIN, (f"{SITE}/{file}", 700, str(function), str(code))])
    root = engine.triage(from_bytes(text("step 3 loss 2.1", trace))).root_cause
    return root.entry if root else None


@pytest.mark.parametrize(
    ("expected", "last", "file", "function"),
    [
        ("compile.dynamo", "AssertionError: views of a mutated base are not planned", "torch/_functorch/partitioners.py", "plan"),
        ("compile.dynamo", "KeyError: 'buf12'", "torch/_inductor/scheduler.py", "fuse"),
        ("compile.dynamo", "RuntimeError: this output has no node", "torch/export/_trace.py", "_export"),
        ("usage.config", "ValueError: Expected float between 0 and 1 pct_start, but got 30", "torch/optim/lr_scheduler.py", "__init__"),
        ("usage.config", "TypeError: lr_lambda should be a function, but got 3", "torch/optim/lr_scheduler.py", "__init__"),
        ("usage.shape-mismatch", "AssertionError: expecting key weights shape of (8, 8), but got (8, 4)", "torch/nn/functional.py", "attend"),
        ("usage.shape-mismatch", "ValueError: input has to be 1D or 2D Tensor, but got Tensor of dimension 3", "torch/nn/functional.py", "bag"),
        ("checkpoint.format", "RuntimeError: Unknown saved id type: modul", "torch/serialization.py", "persistent_load"),
        ("checkpoint.size-mismatch", "AssertionError: req head.bias mismatch sizes (10,) vs (12,)", "torch/distributed/checkpoint/filesystem.py", "read_data"),
        ("storage.disk-full", "OSError: [Errno 28] No space left on device", "tensorboard/summary/writer/record_writer.py", "write"),
    ],
)  # fmt: skip
def test_the_part_of_torch_that_refuses_shows_the_cause(
    engine: Engine, expected: str, last: str, file: str, function: str
) -> None:
    assert cause(engine, last, file, function, "raise refused(what)") == expected


def test_a_lock_whose_mode_cannot_be_set_is_a_matter_of_permission(engine: Engine) -> None:
    code = "os.fchmod(handle, self._context.mode)"
    assert cause(
        engine, "PermissionError: [Errno 1] Operation not permitted", "filelock/_unix.py", "_acquire", code
    ) == ("storage.permission")


def test_a_kernel_that_ran_out_of_memory_below_the_compiler_stays_one(engine: Engine) -> None:
    last = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    assert cause(engine, last, "torch/_inductor/runtime/runner.py", "run", "return call(args)") == "cuda.oom"


def test_what_wandbs_start_ends_in_is_the_trackers(engine: Engine) -> None:
    file, code = "wandb/sdk/wandb_init.py", 'six.raise_from(Exception("problem"), error)'
    assert cause(engine, "Exception: problem", file, "init", code) == "env.tracker"
    assert cause(engine, "KeyboardInterrupt", file, "init", "time.sleep(1)") != "env.tracker"


def test_a_save_whose_last_words_were_cut_off_is_one(engine: Engine) -> None:
    frames = [
        MAIN,
        *((f"{SITE}/torch/serialization.py", line, name, "_save(") for line, name in ((9, "save"), (12, "_save"))),
    ]
    cut = traceback("", frames)[:-1]
    root = engine.triage(from_bytes(text("step 3 loss 2.1", cut))).root_cause
    assert root is not None
    assert root.entry == "checkpoint.save-failed"
