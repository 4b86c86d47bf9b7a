"""The log file that a line says to read is the first step, with its command."""

from __future__ import annotations

import pytest

from torchtriage.answer.referenced_log import referenced_log
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

STEPS = "step 24 loss 0.31\nstep 25 loss 0.30\n"


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("stage 3 failed, log is in exp/tdnn/log/train.24.1.log", "exp/tdnn/log/train.24.1.log"),
        ("ERROR: check the log file: '/data/run/train_3.log'", "/data/run/train_3.log"),
        ("job 33 aborted, see ~/logs/33.err for details", "~/logs/33.err"),
        ("Output: run.out", "run.out"),
        ("trainer.log:71: KeyError", None),
        ("see https://example.org/a.log/b", None),
        ("in math.log(x)", None),
        ("no space left", None),
    ],
)
def test_the_file_that_a_line_names(line: str, path: str | None) -> None:
    assert referenced_log(line) == path


def test_an_error_that_no_entry_knows_leads_to_the_log_that_it_names(engine: Engine) -> None:
    verdict = engine.triage(
        from_bytes(f"{STEPS}ERROR: training stage failed. Check the log file: /data/run/3.log\n".encode())
    )
    assert verdict.outcome == "unexplained"
    assert verdict.answer is not None
    (step,) = verdict.answer.steps
    assert step.do == "Read the end of /data/run/3.log, which line 3 names."
    assert step.run == "tail -n 50 /data/run/3.log"


def test_last_words_that_point_to_a_log_lead_to_it_first(engine: Engine) -> None:
    verdict = engine.triage(from_bytes(f"{STEPS}batchtool: job 33 aborted, see logs/33.err for details\n".encode()))
    assert verdict.outcome == "inconclusive"
    assert verdict.answer is not None
    assert verdict.answer.steps[0].run == "tail -n 50 logs/33.err"


def test_a_path_that_a_shell_could_take_for_more_gives_no_command(engine: Engine) -> None:
    verdict = engine.triage(from_bytes(f"{STEPS}ERROR: stage failed. Check the log file: /data/$(id)/3.log\n".encode()))
    assert verdict.answer is not None
    assert all("$(" not in (step.run or "") for step in verdict.answer.steps)
