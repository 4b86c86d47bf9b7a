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
