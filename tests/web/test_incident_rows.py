from __future__ import annotations

from torchtriage.domain.verdict import Attempt, Evidence, ExceptionFact, RootCause, StackFrame
from torchtriage.web.pages.incident_rows import attempt_rows, evidence_rows


def root(*lines: tuple[int, str], frames: tuple[StackFrame, ...] = ()) -> RootCause:
    raised = ExceptionFact("RuntimeError", "x", frames)
    shown = tuple(Evidence(line, text) for line, text in lines)
    return RootCause("cuda.oom", "t", "likely", 0.8, evidence=shown, exception=raised)


def watchdog(rank: int) -> str:
    return f"[rank{rank}]:[E0501 09:12:0{rank}.100000 ProcessGroupNCCL.cpp:683] [Rank {rank}] Watchdog caught a timeout, ran for 60001{rank} ms."


def test_equal_lines_of_several_ranks_are_one_row() -> None:
    rows = evidence_rows(root((50, watchdog(0)), (52, watchdog(1)), (54, watchdog(2)), (60, "another line")))
    assert [(row.line.line, [one.line for one in row.same]) for row in rows] == [(50, [52, 54]), (60, [])]


def test_the_telling_line_is_first_and_the_rest_in_order() -> None:
    rows = evidence_rows(root((9, "RuntimeError: boom"), (12, "srun: error"), (3, "step failed"), (7, "loss is NaN")))
    assert [row.line.line for row in rows] == [9, 3, 7, 12]


def test_frames_of_installed_code_are_distinguished_from_user_code() -> None:
    frames = (
        StackFrame("/job/train.py", 30, "main"),
        StackFrame("/env/site-packages/torch/nn.py", 7, "forward", "", False),
    )
    lines = [
        (1, 'File "/job/train.py", line 30, in main'),
        (2, '  File "/env/site-packages/torch/nn.py", line 7, in forward'),
    ]
    assert [row.library for row in evidence_rows(root(*lines, frames=frames))] == [False, True]


def test_no_evidence_makes_no_row() -> None:
    assert evidence_rows(root()) == ()


def test_attempts_that_failed_of_the_same_are_one_row() -> None:
    entries = ["cuda.oom", "cuda.oom", "cuda.oom", None, "cuda.oom"]
    rows = attempt_rows([Attempt(number, entry, 10 * number) for number, entry in enumerate(entries)])
    told = [(row.first.attempt, row.last.attempt, row.count, row.first.entry, row.last.line) for row in rows]
    assert told == [(0, 2, 3, "cuda.oom", 20), (3, 3, 1, None, 30), (4, 4, 1, "cuda.oom", 40)]
