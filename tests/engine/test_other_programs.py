"""Logs of programs that train nothing: whatever goes wrong in them, no entry of this field is named."""

import pytest

from tests.engine.test_engine import triage
from torchtriage.engine import Engine

BROKER = [
    "[2026-04-02 10:11:12,131] ERROR Error while writing to file in directory /var/broker (broker.LogDirFailureChannel)",
    "java.io.IOException: No space left on device",
    "\tat java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)",
    "\tat java.base/sun.nio.ch.IOUtil.write(IOUtil.java:65)",
]
POSTGRES = [
    "2026-04-02 10:11:12 UTC [311] ERROR:  deadlock detected",
    '2026-04-02 10:11:12 UTC [311] FATAL:  could not write to file "base/1": No space left on device',
]
REDIS = ["3121:M 02 Apr 2026 10:11:12.131 # Can't save in background: fork: Cannot allocate memory"]
DOTNET = [
    "Unhandled exception. System.IO.IOException: No space left on device : '/data/x.bin'",
    "   at Program.Main() in /src/Program.cs:line 8",
]
CMAKE = [
    "[ 12%] Building CXX object src/CMakeFiles/shop.dir/basket.cpp.o",
    "/home/u/shop/src/basket.cpp:12:5: error: 'x' was not declared in this scope",
    "make[2]: *** [src/CMakeFiles/shop.dir/build.make:76: src/CMakeFiles/shop.dir/basket.cpp.o] Error 1",
    "make: *** [Makefile:136: all] Error 2",
]
CARGO = [
    "   Compiling libc v0.2.153",
    "error: linking with `cc` failed: exit status: 1",
    "          collect2: error: ld returned 1 exit status",
    'error: could not compile `shop` (bin "shop") due to 1 previous error',
]

WEB_POD = [
    "Name:             basket-api-6d5f8-xyz",
    "Namespace:        shop",
    "Status:           Running",
    "Containers:",
    "  api:",
    "    Image:        registry.example.com/shop/basket:1.9",
    "    Last State:   Terminated",
    "      Reason:     OOMKilled",
    "      Exit Code:  137",
    "Events:",
    "  Warning  BackOff  2m  kubelet  Back-off restarting failed container api in pod basket-api-6d5f8-xyz",
]
BUCKET = [
    "START RequestId: 3f2 Version: 7",
    "[ERROR] ClientError: An error occurred (AccessDenied) when calling the PutObject operation: Access Denied",
    "Traceback (most recent call last):",
    '  File "/var/task/app.py", line 20, in handler',
    "    s3.put_object(Bucket=name, Key=key, Body=body)",
    '  File "/var/runtime/botocore/client.py", line 530, in _api_call',
    "    return self._make_api_call(operation_name, kwargs)",
    "END RequestId: 3f2",
    "REPORT RequestId: 3f2 Duration: 812.1 ms Memory Size: 128 MB",
]
FLOW = [
    "Starting simpleFoam of OpenFOAM v2306",
    "#0  Foam::error::printStack(Foam::Ostream&)",
    "#1  Foam::sigFpe::sigHandler(int)",
    "slurmstepd: error: *** JOB 991 ON c12 CANCELLED AT 2026-02-02T10:00:00 DUE TO TIME LIMIT ***",
]
MOLECULES = [
    "Traceback (most recent call last):",
    '  File "/srv/cryosparc/cryosparc-compute/sparcjob.py", line 217, in <module>',
    "    superspeed = job_type == 'superrefine')",
    '  File "/srv/cryosparc/cryosparc-compute/search.py", line 241, in compute_Us',
    "    results = pool.map(work, zip(images, rss, tss))",
    "LogicError: cuStreamSynchronize failed: an illegal memory access was encountered",
]
DETECTOR = [
    "Region 82 Avg IOU: 0.81, Class: 0.99, Obj: 0.31, No Obj: 0.000233, .5R: 1.0, .75R: 1.0,  count: 3",
    "Region 94 Avg IOU: 0.91, Class: 0.99, Obj: 0.99, No Obj: 0.002024, .5R: 1.0, .75R: 1.0,  count: 3",
    " 1090: 1.262299, 1.207728 avg loss, 0.001000 rate, 4.776061 seconds, 69760 images",
    "CUDA Error: out of memory",
    "darknet: ./src/utils.c:277: error: Assertion `0' failed.",
]
TASKS = [
    "[2026-05-01 09:00:00,001: ERROR/MainProcess] Process 'ForkPoolWorker-3' pid:27 exited with 'signal 9 (SIGKILL)'",
    "[2026-05-01 09:00:00,002: ERROR/MainProcess] Task handler raised error: WorkerLostError('Worker exited prematurely')",
    "Traceback (most recent call last):",
    '  File "/usr/lib/python3.9/site-packages/billiard/pool.py", line 1265, in mark_as_worker_lost',
    "    raise WorkerLostError(",
    "billiard.exceptions.WorkerLostError: Worker exited prematurely: signal 9 (SIGKILL) Job: 10.",
]
SPIDER = [
    "Traceback (most recent call last):",
    '  File "/usr/lib/python3.9/site-packages/twisted/internet/defer.py", line 588, in _runCallbacks',
    '  File "spiders/expired.py", line 65, in checkDomain',
    "URLError: <urlopen error [Errno 24] Too many open files>",
]
GENOME = [
    "[BWTIncConstructFromPacked] 700 iterations done. 6999999988 characters processed.",
    "/var/spool/job/script: line 5: 159082 Killed                  /opt/bin/bwa index -p /work/steps/01_index genome.fa",
]
PAGE = [
    "Uncaught TypeError: Cannot read properties of undefined (reading 'map')",
    "    at Basket (Basket.jsx:12:20)",
    "    at renderWithHooks (react-dom.development.js:16305:18)",
]
DOOR = [
    "Nov 19 10:00:00 bastion sshd[2211]: error: kex_exchange_identification: Connection closed by remote host",
    "Nov 19 10:00:01 bastion sshd[2212]: Failed password for root from 192.0.2.4 port 4022 ssh2",
]


VIDEO = [
    "ffmpeg version 4.4.2 Copyright (c) 2000-2021 the FFmpeg developers",
    "[mov,mp4,m4a,3gp,3g2,mj2 @ 0x55d2c9c2e6c0] moov atom not found",
    "/srv/uploads/clip.mp4: Invalid data found when processing input",
]
PORT = ["docker: Error response from daemon: driver failed: Bind for 0.0.0.0:8080 failed: port is already allocated."]
STORAGE_BOX = [
    "2026-03-11 02:14:10 kernel: ata3.00: failed command: READ DMA EXT",
    "2026-03-11 02:14:12 synostorage: Volume 1 (Volume status: degraded) on DiskStation",
]

RENDERER = [
    "Fra:12 Mem:2381.13M (Peak 2402.21M) | Time:00:14.22 | Mem:1862.00M, Peak:1862.00M | Scene | Sample 64/512",
    "CUDA error: Out of memory in cuMemAlloc(&device_pointer, size)",
    "Refer to the Cycles GPU rendering documentation for possible solutions:",
    "Error: Out of memory in CUDA queue zero_to_device",
]
CRACKER = [
    "hashcat (v6.2.6) starting",
    "cuModuleLoadDataEx(): no kernel image is available for execution on the device",
]
PLAYBOOK = [
    'fatal: [db-3]: UNREACHABLE! => {"msg": "Failed to connect to the host via ssh: Permission denied (publickey)."}'
]
DASHBOARD = [
    "Name:         dashboard-6b7d8",
    "Namespace:    monitoring",
    '  Warning  Unhealthy  3m  kubelet  Readiness probe failed: Get "http://192.0.2.3:3000/health": connection refused',
    "  Warning  BackOff    1m  kubelet  Back-off restarting failed container dashboard in pod dashboard-6b7d8",
]


@pytest.mark.parametrize(
    "log",
    [
        RENDERER,
        CRACKER,
        PLAYBOOK,
        DASHBOARD,
        BROKER,
        POSTGRES,
        REDIS,
        DOTNET,
        CMAKE,
        CARGO,
        WEB_POD,
        BUCKET,
        FLOW,
        MOLECULES,
        DETECTOR,
        TASKS,
        SPIDER,
        GENOME,
        PAGE,
        DOOR,
        VIDEO,
        PORT,
        STORAGE_BOX,
    ],
)
def test_another_programs_failure_gets_no_cause(engine: Engine, log: list[str]) -> None:
    verdict = triage(engine, log)
    assert verdict.root_cause is None or verdict.root_cause.entry is None


def test_a_cuda_extension_that_make_could_not_build_is_still_named(engine: Engine) -> None:
    build = [
        "g++ -O3 -Wall -shared -std=c++11 helpers.cpp -o helpers -I/opt/env/include/python3.10",
        "helpers.cpp:12:10: fatal error: pybind11/pybind11.h: No such file or directory",
        "make: *** [Makefile:13: helpers] Error 1",
        "ERROR:megatron.core.datasets.utils:Failed to compile the C++ dataset helper functions",
    ]
    root = triage(engine, build).root_cause
    assert root is not None
    assert root.entry is not None


APT = [
    "Step 2/9 : RUN apt-get update && apt-get install -y curl",
    "Err:1 http://archive.ubuntu.com/ubuntu jammy InRelease",
    "  Could not connect to archive.ubuntu.com:80 (10.1.2.3), connection timed out",
    "The command '/bin/sh -c apt-get update' returned a non-zero code: 100",
]
WEB = [
    *[f'127.0.0.1 - - [12/Mar/2026 10:{minute}:07] "GET /item/{minute} HTTP/1.1" 200 -' for minute in range(10, 20)],
    "Traceback (most recent call last):",
    '  File "/srv/shop/lib/python3.11/site-packages/flask/app.py", line 882, in full_dispatch_request',
    "    rv = self.handle_user_exception(e)",
    '  File "/srv/shop/shop/views.py", line 88, in add_to_cart',
    '    price = current_app.config["PRICES"][sku]',
    "KeyError: 'PRICES'",
]
LINKER = [
    "/usr/bin/ld: cannot find -lboost_system: No such file or directory",
    "collect2: error: ld returned 1 exit status",
]
FETCH = ["fatal: unable to access 'https://code.example/website.git/': Failed to connect: Connection timed out"]
BACKUP = ['rsync: [receiver] write failed on "/mnt/backup/a.jpg": No space left on device (28)']
DATABASE_HOST = [
    "Mar 12 04:11:12 db3 kernel: Out of memory: Killed process 1211 (mysqld) total-vm:22048124kB, anon-rss:15644812kB",
    "Mar 12 04:11:14 db3 systemd[1]: mysql.service: Main process exited, code=killed, status=9/KILL",
]
SIMULATION = [
    *[f"smoothSolver:  Solving for Ux, Initial residual = 0.0{n}, No Iterations 4" for n in range(10, 30)],
    "[3] --> FOAM FATAL ERROR: Maximum number of iterations exceeded: 100",
    "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD",
]
IMPORTER = [
    *[f"2026-03-12 10:11:{second} [INFO] importer: page {second} of 40 is in" for second in range(10, 40)],
    "Traceback (most recent call last):",
    '  File "/opt/importer/main.py", line 60, in main',
    '    totals = rows["region"]',
    "KeyError: 'region'",
]

CHEMISTRY = [
    " running on   64 total cores",
    " vasp.6.3.0 20Jan22 complex",
    "srun: error: c12: tasks 0-63: Exited with exit code 1",
]
CHEMISTRY_ALONE = ["+ srun -n 64 vasp_std", "srun: error: c12: tasks 0-63: Exited with exit code 1"]
TESTS = [
    "============================= test session starts ==============================",
    "tests/test_train.py ..F...........                                       [100%]",
    "=================================== FAILURES ===================================",
    "_______________________________ test_train_step ________________________________",
    "E       KeyError: 'lr'",
    "train.py:31: KeyError",
    "=========================== short test summary info ============================",
    "FAILED tests/test_train.py::test_train_step - KeyError: 'lr'",
    "========================= 1 failed, 13 passed in 2.31s =========================",
]


@pytest.mark.parametrize(
    "log", [CHEMISTRY, CHEMISTRY_ALONE, TESTS, APT, WEB, LINKER, FETCH, BACKUP, DATABASE_HOST, SIMULATION, IMPORTER]
)
def test_what_every_program_prints_is_not_a_cause_where_nothing_mentions_training(
    engine: Engine, log: list[str]
) -> None:
    verdict = triage(engine, log)
    assert verdict.root_cause is None or verdict.root_cause.entry is None


@pytest.mark.parametrize(
    ("log", "entry"),
    [
        (["Killed"], "process.oom-killed"),
        (["OSError: [Errno 28] No space left on device"], "storage.disk-full"),
        (["KeyError: 'region'"], "usage.python-error"),
        ([*(f"step {n} loss 0.{n}" for n in range(30)), *IMPORTER[-4:]], "usage.python-error"),
        ([LINKER[0].replace("boost_system", "aio"), LINKER[1], "RuntimeError: Error building extension 'async_io'"],
         "deepspeed.op-build"),
        (DATABASE_HOST[0].replace("mysqld", "python3").split("\n"), "process.oom-killed"),
    ],
    ids=["killed", "disk", "exception", "steps", "extension", "kernel"],
)  # fmt: skip
def test_a_short_paste_and_a_run_that_trains_are_still_explained(engine: Engine, log: list[str], entry: str) -> None:
    root = triage(engine, log).root_cause
    assert root is not None
    assert root.entry == entry


def test_a_test_of_distributed_code_is_still_explained(engine: Engine) -> None:
    training_output = ["tests/test_ddp.py:12: in test_all_reduce", "    torch.distributed.all_reduce(x)", "nccl backend, 2 GPUs",
                "E   torch.distributed.DistNetworkError: no", "E   torch.cuda init", "torch 2.6.0", "cuda 12.4", "nccl 2.21"]  # fmt: skip
    full = "E   torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    assert entry_of(engine, TESTS[:4], training_output, full, TESTS[6:]) == "cuda.oom"


def test_a_job_of_slurm_alone_is_still_explained(engine: Engine) -> None:
    waits = [f"srun: Job 71 step creation temporarily disabled, retrying ({n})" for n in range(20)]
    limit = "slurmstepd: error: *** JOB 71 ON c12 CANCELLED AT 2026-02-02T10:00:00 DUE TO TIME LIMIT ***"
    assert entry_of(engine, waits, limit) == "slurm.time-limit"
    served = [f"[GIN] 2026/02/02 - 09:50:{n} | 200 | POST /v1/chat/completions" for n in range(10, 60)]
    assert entry_of(engine, served, limit) == "slurm.time-limit"


DESKTOP = [
    "kernel: [drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout, signaled seq=41, emitted seq=43",
    "kernel: [drm:amdgpu_job_timedout [amdgpu]] *ERROR* Process information: process chess.exe pid 18 thread dxvk-submit pid 19",
    "kernel: amdgpu 0000:06:00.0: amdgpu: GPU reset begin!",
    "kernel: amdgpu 0000:06:00.0: amdgpu: GPU reset succeeded, trying to resume",
]
DYNAMICS = [
    "terminate called after throwing an instance of 'OpenMM::OpenMMException'",
    "  what():  Error deleting array velm: CUDA_ERROR_ILLEGAL_ADDRESS (700)",
    "GPU 0 of 2, CUDA 12.4",
]


@pytest.mark.parametrize("log", [DESKTOP, DYNAMICS])
def test_words_of_devices_are_not_enough_next_to_a_program_that_uses_gpus(engine: Engine, log: list[str]) -> None:
    verdict = triage(engine, log)
    assert verdict.root_cause is None or verdict.root_cause.entry is None


def test_a_run_next_to_such_a_program_is_still_explained(engine: Engine) -> None:
    steps = [f"step {n} loss 0.{n}" for n in range(30)]
    full = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    assert entry_of(engine, DESKTOP, steps, full) == "cuda.oom"
    assert entry_of(engine, DESKTOP[2:], "kernel: amdgpu: qcm fence wait loop timeout expired") == "rocm.hip-error"
    computes = "kernel: amdgpu: Failed to suspend process 0x8007"  # of the part of the driver that runs kernels
    assert entry_of(engine, DESKTOP, computes) == "rocm.hip-error"


@pytest.mark.parametrize(
    "word",
    [
        "INFO bot: BTC price 42001.0 stop loss 41000.0 take profit 45000",
        "INFO booking: search train 12951 from=DEL to=BCT seats=4",
        "INFO chain: imported new segment epoch=611 mgasps=21.1",
        "INFO etl: loaded dataset orders_7 rows=1000",
    ],
)
def test_one_word_of_training_alone_makes_no_training_run(engine: Engine, word: str) -> None:
    full = "OSError: [Errno 28] No space left on device: '/var/lib/shop/7.bin'"
    assert entry_of(engine, [word] * 20, full) is None
    assert entry_of(engine, [word] * 20, "step 12 epoch 3 loss 0.4", full) == "storage.disk-full"


def entry_of(engine: Engine, *log: list[str] | str) -> str | None:
    cause = triage(engine, *log).root_cause
    return cause.entry if cause else None
