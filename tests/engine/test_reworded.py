"""Messages of torch in words of no version that is known: the family tells the entry, and no more than likely."""

from collections.abc import Callable

import pytest

from tests.engine.test_engine import triage
from tests.logs import traceback
from torchtriage.engine import Engine

REWORDED = {
    "RuntimeError: operands have to live on one device, found cuda:2 and cpu": "usage.device-mismatch",
    "RuntimeError: the kernel got bias on cpu while input is on cuda:1": "usage.device-mismatch",
    "RuntimeError: dtype Half of the query and dtype Float of the key differ": "usage.dtype-mismatch",
    "RuntimeError: cannot contract a 48x96 operand with a 128x12 operand": "usage.shape-mismatch",
    "RuntimeError: a tensor saved for backward has been changed since": "autograd.inplace-version",
    "RuntimeError: this output does not require grad and has no grad_fn": "autograd.no-grad-fn",
    "RuntimeError: the gradient of bucket 3 was marked ready twice": "ddp.marked-ready-twice",
    "RuntimeError: the last reduction was not finished, 4 parameters got no gradient": "ddp.unfinished-reduction",
    "torch.OutOfMemoryError: the caching allocator has no block of 2.00 GiB left": "cuda.oom",
    "RuntimeError: GPU 3 is out of GPU memory, 512 MiB were wanted": "cuda.oom",
    "RuntimeError: state_dict of Net has keys missing from the model": "checkpoint.key-mismatch",
    "RuntimeError: head.weight has shape [10] in the checkpoint and [12] in the model": "checkpoint.size-mismatch",
    "RuntimeError: the checkpoint seems to be truncated": "checkpoint.corrupt",
    "RuntimeError: port 29611 is already taken": "network.address-in-use",
    "RuntimeError: rendezvous 77 timed out, 3 of 4 nodes joined": "elastic.rendezvous-timeout",
    "ValueError: WORLD_SIZE is not set": "elastic.launch-args",
    "RuntimeError: all_gather of group 4 timed out after 600 s": "nccl.timeout",
    "RuntimeError: the process group was not initialized": "ddp.uninitialized-group",
    "RuntimeError: the DataLoader did not deliver a batch within 90 s": "dataloader.timeout",
    "RuntimeError: unable to collate samples of 3 lengths": "dataloader.collate",
    "RuntimeError: CUDA was used before this process was forked": "dataloader.fork-cuda",
    "RuntimeError: no CUDA device is visible": "cuda.no-device",
    "RuntimeError: no kernels for compute capability 12.1": "cuda.no-kernel-image",
}
KNOWN = {
    "concurrent.futures.process.BrokenProcessPool: A child process terminated abruptly, the process pool is not usable anymore":
        "dataloader.worker-killed",
    'RuntimeError: torch_shm_manager at "/v/torch/bin/torch_shm_manager": could not open a socket': "dataloader.shm-bus-error",
    "filelock._error.Timeout: The file lock '/d/cache/a.lock' could not be acquired.": "storage.io-error",
    "OSError: [Errno 99] Cannot assign requested address": "network.no-route",
    "RuntimeError: required rank 5 tensor to use channels_last_3d format": "usage.shape-mismatch",
    "RuntimeError: Unable to handle autograd's threading in combination with fork-based multiprocessing.": "dataloader.fork-cuda",
    "RuntimeError: Can't detach views in-place. Use detach() instead.": "autograd.view-inplace",
}  # fmt: skip


@pytest.mark.parametrize(("message", "entry"), REWORDED.items())
def test_a_reworded_message_is_of_its_family(engine: Engine, message: str, entry: str) -> None:
    root = triage(engine, traceback(message, prefix="[rank2]: ")).root_cause
    assert root is not None
    assert (root.entry, root.rank) == (entry, 2)
    assert root.confidence != "certain"


@pytest.mark.parametrize(("message", "entry"), KNOWN.items())
@pytest.mark.parametrize("whole", [True, False])
def test_what_workers_locks_and_views_say_is_known(engine: Engine, message: str, entry: str, whole: bool) -> None:
    root = triage(engine, traceback(message) if whole else message).root_cause
    assert root is not None
    assert root.entry == entry


@pytest.mark.parametrize(
    "message",
    [
        "ShelfError: 4 of 9 books were moved",
        "RuntimeError: the garden is closed",
        "tea.kettle.KettleTimeout: no steam after 40 s",
    ],
)
def test_what_no_family_knows_stays_unexplained(engine: Engine, message: str) -> None:
    assert triage(engine, message).outcome == "unexplained"


@pytest.mark.parametrize(
    ("frame", "entry"),
    [
        ('  File "/v/torch/utils/data/_utils/collate.py", line 3, in collate_tensor_fn', "dataloader.collate"),
        ('  File "/v/lightning/pytorch/core/module.py", line 3, in load_from_checkpoint', "checkpoint.corrupt"),
    ],
)
def test_a_storage_that_cannot_be_resized_is_reported_by_where_it_stands(
    engine: Engine, frame: str, entry: str
) -> None:
    log = ["Traceback (most recent call last):", frame, "    out = f(x)",
           "RuntimeError: Trying to resize storage that is not resizable"]  # fmt: skip
    root = triage(engine, log).root_cause
    assert root is not None
    assert root.entry == entry


@pytest.mark.parametrize(
    "message",
    [
        "RuntimeError: the reduction of the price was not finished",
        "RuntimeError: cannot batch elements of the page",
        "TimeoutError: collective bargaining timed out",
        "RuntimeError: the checkpoint of the journal seems incomplete",
    ],
)
def test_such_words_in_a_log_of_another_program_are_none_of_ours(engine: Engine, message: str) -> None:
    served = [f"2026-05-01 10:00:{second:02} INFO app.views page {second} was served" for second in range(30)]
    log = [*served, *traceback(message, (("/srv/app/main.py", 5, "run", "go()"),))]
    assert triage(engine, log).outcome == "unexplained"


def test_what_the_scheduler_said_is_next_to_a_weak_sign(engine: Engine) -> None:
    text = "slurmstepd: error: *** JOB 31 ON c12 CANCELLED AT 2026-05-01T10:00:00 ***"
    log = [text, "forrtl: error (78): process killed (SIGTERM)"]
    root = triage(engine, log).root_cause
    assert root is not None
    assert text in [line.text for line in root.evidence]


def test_an_entry_is_likely_when_only_the_title_shows_it(engine: Engine, decided: Callable[[], set[str]]) -> None:
    root = triage(
        engine, "### RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB", "step 1 loss 0.5"
    ).root_cause
    assert root is not None
    assert (root.entry, root.confidence) == ("cuda.oom", "likely")
    assert {"title"} <= decided()
