"""A traceback is read once: where ranks print equal ones, the others' frames are put back, and nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torchtriage.domain.event import Frame
from torchtriage.domain.line import Line, Position
from torchtriage.domain.verdict import Stats, Verdict
from torchtriage.engine import Engine
from torchtriage.parsing.repeated_frames import RepeatedFrames
from torchtriage.reading.sources import from_bytes
from torchtriage.reading.traceback_dedup import KnownTracebacks

FRAMES = [
    'File "/job/train.py", line 31, in <module>',
    "  main()",
    'File "/job/train.py", line 24, in main',
    "  loss.backward()",
    'File "/env/lib/python3.11/site-packages/torch/_tensor.py", line 521, in backward',
    "  torch.autograd.backward(self, gradient)",
]
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.00 GiB"


def traceback(label: str, message: str = OOM, above: str = "") -> str:
    lines = [
        *([above] if above else []),
        "Traceback (most recent call last):",
        *(f"  {frame}" for frame in FRAMES),
        message,
    ]
    return "".join(f"{label}{line}\n" for line in lines)


def dated(rank: int) -> str:
    return f"2026-05-01 09:00:{30 - rank:02d},123 ERROR trainer: rank {rank} failed"


def other(label: str) -> str:
    """Returns a traceback of as many frames, of which the last is another."""
    return traceback(label, "ValueError: loss is nan").replace("line 521", "line 99")


BOXED = "╭── Traceback (most recent call last) ──╮\n" + "".join(f"│ {frame:<90} │\n" for frame in FRAMES) + "╰────╯\n"
LOGS = {
    "labels": "".join(traceback(f"[rank{rank}]: ") for rank in range(8)),
    "no labels": "".join(traceback("", f"{OOM} {rank}") for rank in range(8)),
    "the first one is told by its time": "".join(traceback(f"[rank{rank}]: ", above=dated(rank)) for rank in range(8)),
    "boxes": "".join(BOXED + OOM + "\n" for _ in range(6)),
    "chained": "".join(
        traceback(f"[rank{rank}]: ")
        + f"[rank{rank}]: \n[rank{rank}]: During handling of the above exception, another exception occurred:\n[rank{rank}]: \n"
        + other(f"[rank{rank}]: ")
        for rank in range(8)
    ),
    "frames that differ, as many": "".join((other if rank % 2 else traceback)(f"[rank{rank}]: ") for rank in range(8)),
    "two runs in one file": 2 * (
        "step 1 loss 0.5\n" + traceback("") + "torchrun --nproc_per_node=8 train.py\n"
        "*****************************************\nSetting OMP_NUM_THREADS environment variable for each process to be 1 in "
        "default, to avoid your system being overloaded\n*****************************************\n"
    ) + traceback(""),
}  # fmt: skip


def verdict_of(engine: Engine, log: str) -> Verdict:
    return replace(engine.triage(from_bytes(log.encode())), stats=Stats())


@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
def test_nothing_changes_where_frames_are_left_out(engine: Engine, log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    left_out: list[int] = []
    of = KnownTracebacks.end_of_repeated

    def counted(self: KnownTracebacks, block: bytes, start: int, end: int) -> int:
        left_out.append(of(self, block, start, end))
        return left_out[-1]

    monkeypatch.setattr(KnownTracebacks, "end_of_repeated", counted)
    short = verdict_of(engine, log)
    monkeypatch.setattr(KnownTracebacks, "end_of_repeated", lambda *_: 0)
    assert any(left_out)
    assert short == verdict_of(engine, log)


def test_what_was_left_out_is_after_the_label_of_its_own_rank() -> None:
    head, code = (
        Line(number, f"[rank0]: {text}", text, Position(1, number), rank=0)
        for number, text in ((4, "Traceback"), (10, "    main()"))
    )
    error = Line(11, "[rank0]: ValueError", "ValueError", Position(1, 11), rank=0)
    frames = [Frame("train.py", 31, "<module>", "main()", user_code=True)]
    repeated = RepeatedFrames()
    repeated.expect([head, code, error])
    repeated.between(head, error, frames, [code])

    later, its_error = (one._replace(number=one.number + 90, position=one.position.down(90), raw=f"[rank7]: {one.text}", rank=7)
                        for one in (head, error))  # fmt: skip
    repeated.expect([later, its_error])

    assert repeated.between(later, its_error, [], []) == (
        frames,
        [Line(100, "[rank7]:     main()", "    main()", Position(1, 100), rank=7)],
    )


def test_of_frames_that_differ_and_are_as_many_none_is_taken_for_the_other(engine: Engine) -> None:
    verdict = verdict_of(engine, LOGS["frames that differ, as many"])
    assert verdict.root_cause is not None
    assert verdict.root_cause.exception is not None
    assert verdict.root_cause.exception.frames[-1].line == 521
