"""Any bytes at all: an answer or UnreadableLog, and work that grows no faster than the log."""

from __future__ import annotations

import gzip
import random
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.copied_logs import COPIED
from tests.encoded_logs import ENVELOPES
from tests.log_wrappings import WRAPPINGS
from tests.properties.pieces import HUGE, LINES, PREFIXES
from tests.properties.test_invariance import corpus_log, fixed, logs
from tests.surrounded_lines import SURROUNDED
from torchtriage.domain.verdict import Outcome
from torchtriage.engine import Engine
from torchtriage.errors import UnreadableLog
from torchtriage.reading import zstd
from torchtriage.reading.sources import LogFile, Run, from_bytes
from torchtriage.reading.unpack import UnpackBudget, Upload, unpack

FORMS = {**WRAPPINGS, **SURROUNDED, **COPIED, **ENVELOPES}
REPEATED = {
    "tracebacks without an end": "Traceback (most recent call last):\n",
    "frames without an end": '  File "/job/train.py", line 30, in step\n    step()\n',
    "lines of a message": "ValueError: a\n b\n c\n",
    "reports": "Root Cause (first observed failure):\n[0]:\n  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: 2)\n",
    "ends of workers": "failed (exitcode: -9) local_rank: 1 (pid: 71)\n",
    "ends of C++": "terminate called after throwing an instance of 'c10::Error'\n",
    "chained": "KeyError: 1\n\nDuring handling of the above exception, another exception occurred:\n\n",
    "glued": "Traceback (most recent call last):" * 40 + "\n",
    "bars": " 50%|#####     | 50/100 [00:10<00:10]\r" * 40 + "\n",
    "boxes": "│ /job/train.py:30 in step │\n",
    "prefixes": "[rank3]: " * 60 + "KeyError: 1\n",
    "records": '{"log":"KeyError: 1\\n","stream":"stderr","time":"2026-05-01T09:10:00.1Z"}\n',
    "brackets": "[" * 200 + "'" * 200 + "KeyError: " + "a." * 300 + "\n",
}


def answers(engine: Engine, run: Run) -> None:
    """Asks for the verdict, and for the JSON that is made of it."""
    try:
        verdict = engine.triage(run)
    except UnreadableLog:
        return
    assert verdict.as_dict()["outcome"] in get_args(Outcome)


def upload(data: bytes) -> Run:
    def files() -> Any:
        for file in unpack(Upload("log", iter((data,))), UnpackBudget(1 << 24)):
            yield LogFile(file.name, lambda file=file: file.chunks)  # type: ignore[misc]

    return Run("log", files, several=True)


@st.composite
def spliced(draw: st.DrawFn) -> bytes:
    """Returns pieces of logs, in any order, prefixed, doubled and cut."""
    piece = st.tuples(st.sampled_from(["", *PREFIXES]), st.sampled_from(LINES), st.integers(0, 400))
    lines = [prefix + line[: cut if cut < 60 else None] for prefix, line, cut in draw(st.lists(piece, max_size=15))]
    return draw(st.sampled_from(["\n", "\r\n", "\r", "\n\n"])).join(lines).encode()


@fixed(max_examples=80)
@given(data=st.binary(max_size=300))
def test_bytes(engine: Engine, data: bytes) -> None:
    answers(engine, from_bytes(data))
    answers(engine, upload(data))


@pytest.mark.slow
@fixed(max_examples=60)
@given(data=spliced())
def test_pieces_of_logs(engine: Engine, data: bytes) -> None:
    answers(engine, from_bytes(data))


@pytest.mark.parametrize("line", LINES)
def test_each_piece_alone_and_behind_each_prefix(engine: Engine, line: str) -> None:
    answers(engine, from_bytes(line.encode()))
    answers(engine, from_bytes("\n".join(prefix + line for prefix in PREFIXES).encode()))


def damaged(data: bytearray, dice: random.Random) -> bytes:
    """Returns the bytes with some of them changed, taken away and put in."""
    for _ in range(dice.randint(1, 30)):
        at = dice.randrange(len(data))
        match dice.randrange(3):
            case 0:
                data[at] = dice.randrange(256)
            case 1:
                del data[at : at + dice.randrange(200)]
            case _:
                data[at:at] = dice.choice(LINES).encode() + b"\n"
        data = data or bytearray(b"\n")
    return bytes(data)


@fixed(max_examples=25)
@given(name=logs, dice=st.randoms(use_true_random=False))
def test_damaged_logs(engine: Engine, name: str, dice: random.Random) -> None:
    answers(engine, from_bytes(damaged(bytearray(corpus_log(name)[:20_000]), dice)))


@pytest.mark.slow
@fixed(max_examples=100)
@given(name=logs, form=st.sampled_from(sorted(FORMS)), dice=st.randoms(use_true_random=False))
def test_damaged_logs_in_other_forms(engine: Engine, name: str, form: str, dice: random.Random) -> None:
    lines = corpus_log(name)[:20_000].decode("utf-8", "replace").split("\n")
    answers(engine, from_bytes(damaged(bytearray(FORMS[form](lines)[0]), dice)))


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress])
@fixed(max_examples=40)
@given(dice=st.randoms(use_true_random=False))
def test_damaged_archives(engine: Engine, pack: Callable[[bytes], bytes], dice: random.Random) -> None:
    data = bytearray(pack("\n".join(LINES).encode()))
    for _ in range(dice.randint(0, 3)):
        data[dice.randrange(2, len(data))] = dice.randrange(256)
    answers(engine, upload(bytes(data[: dice.randint(1, len(data))])))


def work(engine: Engine, data: bytes) -> int:
    """Returns how many lines of our own code run for a log."""
    count = 0
    ours = str(Path(__file__).resolve().parents[2] / "app" / "torchtriage")

    def local(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return local

    def called(frame: FrameType, event: str, arg: object) -> Any:
        return local if frame.f_code.co_filename.startswith(ours) else None

    before = sys.gettrace()
    sys.settrace(called)
    try:
        answers(engine, from_bytes(data))
    finally:
        sys.settrace(before)
    return count


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(REPEATED))
def test_twice_the_log_is_no_more_than_twice_the_work(engine: Engine, kind: str) -> None:
    once, size = REPEATED[kind], 16_000
    data = (once * (size // len(once))).encode()
    answers(engine, from_bytes(data))  # What is kept from one log to the next is there now.
    assert work(engine, data + data) < 2.3 * work(engine, data) + 2000


@pytest.mark.parametrize(
    "line",
    [
        f"[rank{HUGE}]: KeyError: 1",
        f" [gpu{HUGE}{HUGE}{HUGE}{HUGE} x\n" * 8,
        "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=BROADCAST)\n"
        "[Rank 999999999999] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=BROADCAST)",
        '{"a":' * 3000,
        '{"log": "\\ud800KeyError: \\udfff", "stream": "stderr", "time": 5}',
    ],
    ids=[
        "a number of 5000 digits",
        "a host's name without an end",
        "a rank beyond all worlds",
        "a deep record",
        "half a character",
    ],
)
def test_what_once_broke_it(engine: Engine, line: str) -> None:
    answers(engine, from_bytes(line.encode()))
