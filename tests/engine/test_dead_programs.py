"""How a process ended is no failure of a run where the log is from another program."""

import pytest

from tests.engine.test_engine import triage
from torchtriage.engine import Engine

BROWSER = ["[31:31:ERROR:gpu_process_host.cc(991)] the GPU process has gone", "GPU process isn't usable. Goodbye."]
SCRIPT_ENGINE = ["FATAL ERROR: heap limit reached - JavaScript heap out of memory", " 1: 0xb090e0 node::Abort() [node]"]
FLOW = ["Exec   : pisoFoam -parallel", "[2] --> FOAM FATAL ERROR:", "[2] no convergence in 40 iterations"]
RENDERER = ["-- Found CUDA: /usr/local/cuda (found version 12.2)", "-- Performing Test HAS_SSE - Failed"]
ABORT = "MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD"


@pytest.mark.parametrize(
    ("log", "end"),
    [
        (BROWSER, "Trace/breakpoint trap (core dumped)"),
        (SCRIPT_ENGINE, "Aborted (core dumped)"),
        (FLOW, ABORT),
        (RENDERER, "nvcc fatal   : Unsupported gpu architecture 'compute_20'"),
    ],
)
def test_another_program_that_died_names_no_cause(engine: Engine, log: list[str], end: str) -> None:
    root = triage(engine, log, end).root_cause
    assert root is None or root.entry is None


@pytest.mark.parametrize(
    ("end", "entry"),
    [
        ("Trace/breakpoint trap (core dumped)", "process.sigfpe"),
        ("Aborted (core dumped)", "process.sigabrt"),
        (ABORT, "mpi.error"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_20'", "env.compiler"),
    ],
)
def test_the_same_end_of_a_run_that_trains_is_one(engine: Engine, end: str, entry: str) -> None:
    steps = [f"step {step} loss {2 / (step + 1):.3f} on cuda:0, torch 2.6.0" for step in range(4)]
    root = triage(engine, steps, end).root_cause
    assert root is not None
    assert root.entry == entry


@pytest.mark.parametrize(
    ("end", "entry"),
    [
        ("Segmentation fault (core dumped)", "process.sigsegv"),
        ("Segmentation fault", "process.sigsegv"),
        ("段错误 (核心已转储)", "process.sigsegv"),
        ("Aborted (core dumped)", "process.sigabrt"),
        ("Bus error (core dumped)", "process.sigbus"),
        ("Illegal instruction (core dumped)", "process.illegal-instruction"),
        ("Floating point exception (core dumped)", "process.sigfpe"),
        ("Killed", "process.oom-killed"),
        ("已杀死", "process.oom-killed"),
    ],
)
@pytest.mark.parametrize(
    "bar", ["Epoch 3:  18%|█▊        | 11/60 [00:02<00:08,  5.02it/s, loss=0.7]", "ep 3: 18%|| 11/60 [00:02<00:09]"]
)
def test_the_shells_words_after_a_bar_are_read(engine: Engine, bar: str, end: str, entry: str) -> None:
    root = triage(engine, bar + end).root_cause
    assert root is not None
    assert root.entry == entry
