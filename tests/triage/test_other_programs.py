"""Logs of programs that train nothing: whatever goes wrong in them, no entry of this field is named."""

import pytest

from app.triage.engine import Engine
from tests.triage.test_engine import triage

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


@pytest.mark.parametrize("log", [BROKER, POSTGRES, REDIS, DOTNET, CMAKE, CARGO])
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


@pytest.mark.parametrize("log", [APT, WEB, LINKER, FETCH, BACKUP, DATABASE_HOST, SIMULATION, IMPORTER])
def test_what_every_program_prints_is_no_cause_where_nothing_speaks_of_training(engine: Engine, log: list[str]) -> None:
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
