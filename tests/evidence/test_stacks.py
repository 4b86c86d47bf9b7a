from __future__ import annotations

import json

import pytest

from torchtriage.engine import Engine
from torchtriage.evidence.collect import rank_in_name
from torchtriage.evidence.collective_words import CollectiveWords
from torchtriage.evidence.stacks import doing, elsewhere, is_stack_alone, read_stack
from torchtriage.reading.file_types import FileForm, form_of
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
def test_the_main_thread_tells_where_the_user_s_code_stood(data: bytes, form: FileForm) -> None:
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


def test_of_two_ranks_the_one_in_no_collective_is_named_where_there_is_no_dump(engine: Engine) -> None:
    inside = b'Thread 7 (idle): "MainThread"\n    all_reduce (torch/distributed/distributed_c10d.py:3252)\n'
    stacks = {0: read_stack(inside, "rank_0.txt", 1, 0), 1: read_stack(PY_SPY, "rank_1.txt", 2, 1)}
    words = CollectiveWords(engine.knowledge.vocabulary)
    hang = elsewhere(stacks, None, words)
    assert hang is not None
    assert hang.suspects == (1,)
    assert elsewhere(stacks, hang, words) is None  # what dumps tell counts more than one against one


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
def test_a_name_tells_the_rank(name: str, rank: int | None) -> None:
    assert rank_in_name(name) == rank
