from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchtriage.domain.verdict import Verdict
from torchtriage.engine import Engine
from torchtriage.evidence.collect import rank_in_name
from torchtriage.evidence.collective_vocabulary import CollectiveVocabulary
from torchtriage.evidence.stacks import doing, hang_of_stacks, is_stack_alone, read_stack
from torchtriage.reading.file_types import FileForm, form_of
from torchtriage.reading.sources import open_path
from torchtriage.reading.whole_files import NotRead

PY_SPY = b"""Process 4711: python train.py --fsdp
Python v3.11.7 (/usr/bin/python3.11)

Thread 4720 (idle): "pin_memory"
    wait (threading.py:327)
Thread 4711 (active+gil): "MainThread"
    poll (selectors.py:415)
    load_batch (/job/data.py:31)
    <module> (/job/train.py:88)
"""
FAULTHANDLER = b"""Timeout (0:05:00)!
Thread 0x00007f5c81ffb6c0 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 327 in wait

Thread 0x00007f5c98a4cb80 (most recent call first):
  File "/usr/lib/python3.11/selectors.py", line 415 in select
  File "/job/data.py", line 31 in load_batch
  File "/job/train.py", line 88 in <module>
"""
JSON = json.dumps([
    {"pid": 1, "thread_name": "pin", "owns_gil": False, "frames": [{"name": "wait", "filename": "threading.py", "line": 3}]},
    {"pid": 1, "thread_name": "MainThread", "owns_gil": True, "frames": [{"name": "load_batch", "filename": "/job/data.py", "line": 31}]},
]).encode()  # fmt: skip


@pytest.mark.parametrize(
    ("data", "form"), [(PY_SPY, FileForm.PY_SPY), (JSON, FileForm.PY_SPY), (FAULTHANDLER, FileForm.FAULTHANDLER)]
)
def test_the_main_thread_shows_where_the_user_s_code_stood(data: bytes, form: FileForm) -> None:
    assert form_of(data) is form
    assert doing(read_stack(data, "stack_3.txt", 1, 3)).endswith("load_batch (data.py:31)")


def test_a_log_that_begins_with_a_stack_is_still_a_log() -> None:
    assert is_stack_alone(FAULTHANDLER)
    assert is_stack_alone(FAULTHANDLER.replace(b"\n  File", b"\n  Garbage-collecting\n  File", 1))
    assert not is_stack_alone(FAULTHANDLER + b"RuntimeError: CUDA out of memory\n")
    assert form_of(b"step 1 loss 2.0\n" + FAULTHANDLER) is FileForm.LOG


@pytest.mark.parametrize(
    "data", [b"Process 1: a\nPython v3\n", b"[" * 100_000, b"[" + b"{}," * 300_000 + b"{}]", b'[{"frames": 3}]']
)
def test_what_holds_no_stack_is_not_read(data: bytes) -> None:
    with pytest.raises(NotRead):
        read_stack(data, None, 1, None)


def test_of_two_ranks_the_one_in_no_collective_is_named_where_there_is_not_a_dump(engine: Engine) -> None:
    inside = b'Thread 7 (idle): "MainThread"\n    all_reduce (torch/distributed/distributed_c10d.py:3252)\n'
    stacks = {0: read_stack(inside, "rank_0.txt", 1, 0), 1: read_stack(PY_SPY, "rank_1.txt", 2, 1)}
    words = CollectiveVocabulary(engine.knowledge.vocabulary)
    hang = hang_of_stacks(stacks, None, words)
    assert hang is not None
    assert hang.suspects == (1,)
    assert hang_of_stacks(stacks, hang, words) is None  # what dumps tell counts more than one against one


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("_dump_12", 12),
        ("nccl_trace_rank_3", 3),
        ("attempt_0/rank7/stack.txt", 7),
        ("stack_3.txt", 3),
        ("dump.json", None),
        ("pid-471100.txt", None),
    ],
)
def test_a_name_shows_the_rank(name: str, rank: int | None) -> None:
    assert rank_in_name(name) == rank


def process(number: int, *frames: str, command: str = "python -u train.py", thread: str = "MainThread") -> str:
    shown = "".join(f"    {frame}\n" for frame in frames)
    return f'Process {number}: {command}\nPython v3.11.7 (/usr/bin/python3.11)\n\nThread {number} (idle): "{thread}"\n{shown}'


BACKWARD = (
    "_engine_run_backward (torch/autograd/graph.py:865)",
    "backward (torch/_tensor.py:630)",
    "<module> (train.py:88)",
)
UPLOAD = ("readinto (socket.py:706)", "upload (train.py:41)", "<module> (train.py:70)")
REDUCE = ("all_reduce (torch/distributed/distributed_c10d.py:2810)", "evaluate (train.py:50)", "<module> (train.py:71)")


def stacked(engine: Engine, tmp_path: Path, files: dict[str, str]) -> Verdict:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return engine.triage(open_path(tmp_path))


@pytest.mark.parametrize("third", [BACKWARD, REDUCE])
def test_most_are_in_the_backward_pass_and_one_does_not(engine: Engine, tmp_path: Path, third: tuple[str, ...]) -> None:
    frames = (BACKWARD, BACKWARD, UPLOAD, third)  # the one that waits in a smaller group is none of the others
    files = {f"rank_{rank}.txt": process(4000 + rank, *each) for rank, each in enumerate(frames)}
    verdict = stacked(engine, tmp_path, files)
    assert verdict.run.suspect_ranks == (2,)
    assert verdict.answer is not None
    assert verdict.answer.case == "elsewhere"


@pytest.mark.parametrize(
    "stacks",
    [
        (BACKWARD, UPLOAD),  # two can't tell
        (BACKWARD, BACKWARD, UPLOAD, UPLOAD),
        (UPLOAD, UPLOAD, UPLOAD, REDUCE),  # most do something of their own: the one that waits is not to blame
        (UPLOAD, UPLOAD, UPLOAD, BACKWARD),
        (BACKWARD, BACKWARD, BACKWARD, BACKWARD),
        (BACKWARD, BACKWARD, REDUCE, BACKWARD),  # of a smaller group, for one of the others
    ],
)  # fmt: skip
def test_where_the_backward_pass_shows_no_one(
    engine: Engine, tmp_path: Path, stacks: tuple[tuple[str, ...], ...]
) -> None:
    files = {f"rank_{rank}.txt": process(4000 + rank, *frames) for rank, frames in enumerate(stacks)}
    assert stacked(engine, tmp_path, files).run.suspect_ranks == ()


def test_of_several_processes_in_a_file_the_one_that_is_elsewhere_is_named(engine: Engine, tmp_path: Path) -> None:
    worker = (
        "select (selectors.py:415)",
        "_worker_loop (torch/utils/data/_utils/worker.py:275)",
        "<module> (train.py:60)",
    )
    agent = ("_invoke_run (torch/distributed/elastic/agent/server/api.py:923)", "<module> (torchrun:8)")
    lines = [process(4711 + rank, *(UPLOAD if rank == 2 else BACKWARD)) for rank in range(4)]
    lines += [process(4811 + number, *worker) for number in range(8)]
    text = process(4700, *agent, command="python torchrun train.py") + "".join(lines)
    verdict = stacked(engine, tmp_path, {"stacks.txt": text})
    assert verdict.answer is not None
    assert verdict.answer.says.startswith(
        "The stacks show Process 4713 in readinto (socket.py:706), called by upload (train.py:41), while 3 others waited."
    )
    assert verdict.run.suspect_ranks == ()
    assert verdict.root_cause is not None
    shown = text.split("\n")[verdict.root_cause.evidence[0].line - 1]
    assert shown == "    readinto (socket.py:706)"


def test_the_stacks_that_torch_s_debug_server_writes_name_their_ranks(engine: Engine, tmp_path: Path) -> None:
    waits = (
        'Thread 0x00007f5c98a4cb80 (most recent call first):\n  File "/venv/lib/python3.11/site-packages/torch/distributed/'
        'distributed_c10d.py", line 2810 in all_reduce\n  File "/job/train.py", line 71 in <module>\n'
    )
    sleeps = (
        'Thread 0x00007f5c98a4cb80 (most recent call first):\n  File "/job/train.py", line 9 in license\n'
        '  File "/job/train.py", line 70 in <module>\n'
    )
    ranks = [waits, sleeps, waits, "Error: 500\n", waits]
    text = "PARTIAL DATA: 4/5 workers responded\n  Rank 3: timed out\n\n"
    text += "\n".join(f"=== Rank {rank}: http://gpu-021:4123{rank} ===\n{found}" for rank, found in enumerate(ranks))
    assert form_of(text.encode()) is FileForm.RANK_STACKS
    verdict = stacked(engine, tmp_path, {"stacks_20260501_090500.txt": text})
    assert verdict.run.suspect_ranks == (1,)
    assert [(source.taken_for, source.rank) for source in verdict.run.sources] == [(FileForm.RANK_STACKS, None)]


def test_a_lock_is_reported_by_who_asks_for_it_not_by_how_the_c_library_waits() -> None:
    gdb = """Thread 1 (Thread 0x7f9bf1138b80 (LWP 7189) "python3"):
#0  __futex_abstimed_wait_common64 (private=0, cancel=true, abstime=0x0) at ./nptl/futex-internal.c:57
#1  0x00007f9bf0a57cff in do_futex_wait (sem=sem@entry=0x5650, abstime=0x0, clockid=0) at ./nptl/sem_waitcommon.c:111
#2  0x00007f9bf06a9370 in PyThread_acquire_lock_timed (lock=lock@entry=0x5650) at Python/thread_pthread.h:483
#3  0x00007f9bf0557081 in _start ()
"""
    assert doing(read_stack(gdb.encode(), None, 1, 2)) == "PyThread_acquire_lock_timed (thread_pthread.h:483)"
    py_spy = """Process 7189: /usr/bin/python3 -u train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 7189 (idle): "MainThread"
    0x7f9bf0a4cf16 (libc.so.6)
    PyThread_acquire_lock_timed (libpython3.11.so.1.0)
    step (train.py:7)
"""
    result = doing(read_stack(py_spy.encode(), None, 1, 2))
    assert result == "PyThread_acquire_lock_timed (libpython3.11.so.1.0), called by step (train.py:7)"


def test_gdb_that_declines_to_load_python_is_not_a_log() -> None:
    head = """[New LWP 21053]
warning: File "/opt/python/bin/python3.11-gdb.py" auto-loading has been declined by your `auto-load safe-path' set to "$debugdir".
To enable execution of this file add
	add-auto-load-safe-path /opt/python/bin/python3.11-gdb.py
line to your configuration file "/root/.config/gdb/gdbinit".
For more information about this security protection see the
"Auto-loading safe path" section in the GDB manual.  E.g., run from the shell:
	info "(gdb)Auto-loading safe path"

Thread 1 (Thread 0x7f9bf1138b80 (LWP 7189) "python3"):
#0  poll () at ../sysdeps/unix/sysv/linux/poll.c:29
[Inferior 1 (process 7189) detached]
"""
    assert form_of(head.encode()) is FileForm.NATIVE_STACKS


def test_what_py_spy_says_of_a_process_that_is_gone_is_not_a_log() -> None:
    line = b"Error: Failed to get process executable name. Check that the process is running.\n\nCaused by:\n    0: No such file\n"
    assert form_of(line) is FileForm.PY_SPY
    assert form_of(b"Error: Failed to get batch 7\nstep 1 loss 2.5\n") is FileForm.LOG
