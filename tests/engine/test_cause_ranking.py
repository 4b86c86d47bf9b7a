"""The cause and the step that are told first are those of the message at hand."""

from dataclasses import replace

import pytest

from tests.built_in import built_in_engine
from torchtriage.answer.cause_ranking import most_likely_first
from torchtriage.domain.entry import Cause, Fix, Text
from torchtriage.domain.verdict import Evidence, ExceptionFact, RootCause
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes


@pytest.fixture(scope="module")
def engine() -> Engine:
    return built_in_engine()


def test_parts_of_the_message_come_first_and_those_of_others_last() -> None:
    always, of_shm, of_fork = Cause("a", "a"), Cause("b", "b", "bus error"), Cause("c", "c", r"(?i)\bfork\b")
    assert most_likely_first([of_shm, always, of_fork], "Cannot Fork") == [of_fork, always, of_shm]
    assert most_likely_first([of_shm, always, of_fork], "") == [always, of_shm, of_fork]
    fixes = [Fix(Text("d", "d")), Fix(Text("e", "e"), shown_by="^killed")]
    assert most_likely_first(fixes, "worker\nkilled by signal") == fixes[::-1]


def test_a_failure_says_its_exception_and_the_lines_that_show_it() -> None:
    root = RootCause(None, "", "likely", 0.5, evidence=(Evidence(1, "[rank1]: no space"),))
    assert replace(root, exception=ExceptionFact("OSError", "full")).words == "OSError: full\n[rank1]: no space"
    assert replace(root, evidence=()).words == ""


# message, entry, how the first step begins
FIRST_STEPS = [
    ("AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * "
     "gradient_acc_step * world_size 64 != 4 * 1 * 8", "deepspeed.config", "Give the batch size once"),
    ("ValueError: optimizer got an empty parameter list", "usage.config", '"optimizer got an empty parameter list"'),
    ("/usr/bin/env: ‘bash\\r’: No such file or directory", "usage.config", "Turn the Windows line ends"),
    ("yaml.scanner.ScannerError: mapping values are not allowed here", "usage.config", "Fix the line named in the error"),
    ("TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to "
     "host memory first.", "usage.device-mismatch", "Before .numpy(), bring"),
    ("RuntimeError: mat1 and mat2 must have the same dtype, but got BFloat16 and Float",
     "usage.dtype-mismatch", "Let autocast choose"),
    ("IndexError: index out of range in self", "usage.index-out-of-range", "After adding tokens, resize"),
    ("ValueError: Target size (torch.Size([8])) must be the same as input size (torch.Size([8, 1]))",
     "usage.shape-mismatch", "Give output and target the same shape"),
    ("KeyError: 'labels'", "usage.python-error", "Print the keys that are there"),
    ("AttributeError: module 'numpy' has no attribute 'int'.", "env.version-conflict", "Removed NumPy names"),
    ("ImportError: libGL.so.1: cannot open shared object file: No such file or directory",
     "env.shared-library", "For system libraries"),
    ("OSError: Repo for model `org/base-7b` is gated. You must be authenticated to access it.",
     "env.hub-download", "For a gated or private repository"),
    ("train.sh: line 14: torchrun: command not found", "env.import-error", "Activate the environment"),
    ("ERROR: Could not build wheels for apex, which is required to install pyproject.toml-based projects",
     "env.compiler", "Build against the torch"),
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity "
     "of 79.15 GiB of which 1.44 GiB is free. Process 5121 has 40.10 GiB memory in use. Including "
     "non-PyTorch memory, this process has 37.60 GiB memory in use.", "cuda.oom", "Check who holds the card"),
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total "
     "capacity of 79.15 GiB of which 1.44 GiB is free. Including non-PyTorch memory, this process has "
     "77.60 GiB memory in use.", "cuda.oom", "Make the step smaller"),
    ("AssertionError: Torch not compiled with CUDA enabled", "cuda.no-device", "If torch.version.cuda is None"),
    ("RuntimeError: CUDA error: initialization error",
     "cuda.init-error", "If every host does it, look into the program"),
    ("RuntimeError: CUDA error: device-side assert triggered", "cuda.device-side-assert", "Find the true line"),
    ("RuntimeError: DataLoader worker (pid 3390) is killed by signal: Segmentation fault.",
     "dataloader.worker-killed", "Otherwise run with num_workers=0"),
    ("_pickle.UnpicklingError: invalid load key, 'v'.", "checkpoint.corrupt", "Fetch a downloaded file again"),
    ("ValueError: loaded state dict contains a parameter group that doesn't match the size of optimizer's "
     "group", "checkpoint.size-mismatch", "For the optimizer, make the same parameters"),
    ("AssertionError: no_sync context manager is incompatible with gradient partitioning logic of ZeRO "
     "stage 3", "deepspeed.config", "For no_sync with ZeRO-2 or 3"),
    ("ValueError: The model did not return a loss from the inputs, only the following keys: logits",
     "hf.trainer", "No loss, or no columns left"),
    ("json.decoder.JSONDecodeError: Extra data: line 12 column 1 (char 4410)", "data.corrupt", "For JSON lines"),
    ("n8:771:902 [5] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.4.1.7<36110> with error "
     "4, opcode 32603, len 0, vendor err 81 (Recv)", "nccl.ib", "For status 4 or 10"),
    ("h1:552:613 [0] misc/ibvwrap.cc:262 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory",
     "nccl.ib", "Unlimit locked memory"),
    ("c76:4110:4188 [1] transport/p2p.cc:265 NCCL WARN Cuda failure 'mapping of buffer object failed'",
     "nccl.unhandled-cuda-error", "Test without peer-to-peer"),
    ("g4:812:990 [1] misc/socket.cc:480 NCCL WARN socketStartConnect: Connect to 10.2.0.4<52711> failed : Connection "
     "refused", "nccl.unhandled-system-error", "Look whether the process behind the address"),
    ("gpu-3:812:1200 [2] bootstrap.cc:340 NCCL WARN Bootstrap Root : rank 3 of 8 ranks has already checked in",
     "nccl.invalid-usage", "Give every process a rank of its own"),
    ("torch.distributed.DistBackendError: [2] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via "
     "c10d key-value store by key '0', but store->get('0') got error: Socket Timeout", "nccl.timeout", "Look what"),
    ("slurmstepd: error: execve(): /opt/envs/train/bin/python: No such file or directory",
     "slurm.launch", "Make the command exist on every node"),
    ("=>> PBS: job killed: walltime 86423 exceeded limit 86400", "slurm.time-limit", "Ask that scheduler"),
    ("sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified",
     "slurm.rejected", "Check which accounts"),
    ("ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 127) local_rank: 0 (pid: 611) of binary: "
     "/bin/bash", "elastic.child-failed", "Run the same command once"),
    ("trainer-0   0/1   CrashLoopBackOff   6   11m", "elastic.child-failed", "Read what the container printed"),
    ("ValueError: Invalid rank 9, rank should be in the interval [0, 7]", "elastic.launch-args", "Number the hosts"),
    ("[812345.123456] Out of memory: Killed process 40713 (python3) total-vm:812345678kB, anon-rss:498123456kB",
     "process.oom-killed", "Give the job more host memory"),
    ("train.sh: line 21: 40713 Killed    python3 train.py", "process.oom-killed", "Find out whether"),
    ("OSError: [WinError 1455] The paging file is too small for this operation to complete.",
     "process.host-oom", "Enlarge the page file"),
    ("double free or corruption (!prev)", "process.sigabrt", "For a heap message"),
    ("Host key verification failed.", "network.ssh", "Add the host keys"),
    ("OSError: [Errno 99] Cannot assign requested address", "network.no-route", "Set MASTER_ADDR to an address"),
    ("OSError: [Errno 116] Stale file handle", "storage.io-error", "Restart so that the files are reopened"),
    ("OSError: [Errno 30] Read-only file system: '/workspace/out/last.pt'", "storage.permission", "For a read-only"),
    ("botocore.exceptions.ClientError: An error occurred (SlowDown) when calling the GetObject operation",
     "storage.object-store", "For SlowDown"),
    ("Warning  Evicted  12s  kubelet  The node was low on resource: memory. Threshold quantity: 100Mi.",
     "k8s.evicted", "If it was memory"),
    ('docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].',
     "container.runtime", "Install and register the toolkit"),
    ("RuntimeError: HIP error: invalid device function", "rocm.hip-error", "Compare the card"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "entry", "step"), FIRST_STEPS)
def test_the_first_step_fits_the_message(engine: Engine, message: str, entry: str, step: str) -> None:
    root = engine.triage(from_bytes(message.encode())).root_cause
    assert root is not None
    assert root.entry == entry
    assert root.fixes[0].title.startswith(step)


# message, entry, advice, retry, hosts to leave out
ADVICE = [
    ("n7:91:120 [0] misc/ibvwrap.cc:252 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory",
     "nccl.ib", "fix-first", "no", ()),
    ("n7:91:120 [0] transport/net_ib.cc:1297 NCCL WARN NET/IB: Got completion from peer 10.0.0.2<4791> with status=12 "
     "opcode=0 len=0 vendor err 129", "nccl.ib", "none", "once", ()),
    ("RuntimeError: CUDA driver error: OS call failed or operation not supported on this OS",
     "cuda.init-error", "fix-first", "no", ()),
    ("There are not enough slots available in the system to satisfy the 16 slots that were requested by the application:",
     "mpi.error", "fix-first", "no", ()),
]  # fmt: skip


@pytest.mark.parametrize(("message", "entry", "advice", "retry", "hosts"), ADVICE)
def test_the_advice_fits_the_message(
    engine: Engine, message: str, entry: str, advice: str, retry: str, hosts: tuple[str, ...]
) -> None:
    verdict = engine.triage(from_bytes(message.encode()))
    assert verdict.root_cause is not None
    assert verdict.root_cause.entry == entry
    action = verdict.action
    assert (action.advice, action.retry, action.exclude_hosts) == (advice, retry, hosts)
