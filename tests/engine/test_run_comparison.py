"""What changed between two runs, from the lines that they print."""

from __future__ import annotations

import pytest

from tests.logs import text, traceback
from torchtriage.answer.run_comparison import MAX_NEW_LINES, ComparedRun, compared, run_lines
from torchtriage.domain.run_comparison import ChangeKind, RunComparison
from torchtriage.engine import Engine
from torchtriage.reading.prefixes.paths import FileOrigins
from torchtriage.reading.reread_lines import tail_lines
from torchtriage.reading.sources import from_bytes

STEPS = [f"2026-05-01 10:00:{step:02} step {step} loss {3 / (step + 1):.4f}" for step in range(30)]
OUT_OF_MEMORY = traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")


def run_of(engine: Engine, *parts: str | list[str], job: dict[str, str] | None = None) -> ComparedRun:
    log = text(*parts)
    lines = tail_lines(1, log, FileOrigins(["log"]).of("log", False))
    return ComparedRun(run_lines(lines, engine.knowledge.vocabulary), engine.triage(from_bytes(log)), job or {})


def changes(engine: Engine, before: str, now: str) -> list[tuple[str, str | None, str | None]]:
    comparison = compared(run_of(engine, before, STEPS), run_of(engine, now, STEPS))
    return [(change.name, change.before, change.now) for change in comparison.changes]


@pytest.mark.parametrize(
    ("before", "now", "name", "values"),
    [
        ("$ torchrun train.py --lr 3e-4 --wd 0.1", "$ torchrun train.py --lr 1e-3 --wd 0.1", "lr", ("3e-4", "1e-3")),
        ("args: --micro-batch-size=4 --bf16", "args: --micro-batch-size=8 --bf16", "micro_batch_size", ("4", "8")),
        ("Namespace(lr=0.1, workers=8)", "Namespace(lr=0.1, workers=2)", "workers", ("8", "2")),
        ('{"dropout": 0.1, "layers": 32}', '{"dropout": 0.0, "layers": 32}', "dropout", ("0.1", "0.0")),
        ("  hidden_size: 4096", "  hidden_size: 5120", "hidden_size", ("4096", "5120")),
        ("  seq_length ................ 2048", "  seq_length ................ 8192", "seq_length", ("2048", "8192")),
        ("['train.py', '--zero', '2', '--amp', 'bf16']", "['train.py', '--zero', '3', '--amp', 'bf16']", "zero", ("2", "3")),
    ],
)  # fmt: skip
def test_a_setting_that_both_print_with_another_value_is_a_change(
    engine: Engine, before: str, now: str, name: str, values: tuple[str, str]
) -> None:
    assert changes(engine, before, now) == [(name, *values)]


def test_an_option_that_one_command_line_lacks_is_a_change_and_one_in_a_sentence_is_not_one(engine: Engine) -> None:
    before, now = "$ train.py --lr 0.1 --seed 7", "$ train.py --lr 0.1 --compile --fp8 on"
    assert changes(engine, before, now) == [("fp8", None, "on"), ("compile", None, "set"), ("seed", "7", None)]
    assert changes(engine, "hello", "Note that --use_env is set by default") == []


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("Namespace(pid=71, started='2026-05-01 10:00:00')", "Namespace(pid=99, started='2026-05-02 11:00:00')"),
        ("Namespace(master='10.0.0.1:29500', run_id='a1')", "Namespace(master='10.0.0.2:29511', run_id='b2')"),
        ("Namespace(output_dir='/runs/1', val_loss=0.3)", "Namespace(output_dir='/runs/2', val_loss=0.2)"),
    ],
)
def test_what_every_run_has_for_itself_is_not_a_change(engine: Engine, before: str, now: str) -> None:
    assert changes(engine, before, now) == []


def test_versions_hosts_and_jobs_are_compared(engine: Engine) -> None:
    before = run_of(
        engine,
        "PyTorch version: 2.5.1",
        "[rank0]: gpu-1:1:1 [0] NCCL INFO Init COMPLETE",
        STEPS,
        job={"image": "train:3"},
    )
    now = run_of(engine, "PyTorch version: 2.6.0", STEPS, job={"image": "train:4", "queue": "spot"})  # fmt: skip
    comparison = compared(before, now)
    assert [(change.kind, change.name, change.before, change.now) for change in comparison.changes] == [
        (ChangeKind.JOB, "image", "train:3", "train:4"),
        (ChangeKind.JOB, "queue", None, "spot"),
        (ChangeKind.VERSION, "torch", "2.5.1", "2.6.0"),
    ]


def test_a_step_that_takes_longer_is_reported(engine: Engine) -> None:
    slow = [f"2026-05-01 10:{step:02}:00 step {step} loss {3 / (step + 1):.4f}" for step in range(30)]
    comparison = compared(run_of(engine, STEPS), run_of(engine, slow))
    assert [(change.kind, change.before, change.now) for change in comparison.changes] == [
        (ChangeKind.TIMING, "1", "60")
    ]
    assert not compared(run_of(engine, STEPS), run_of(engine, STEPS)).changes


def test_lines_of_a_new_form_above_the_failure_are_reported_and_no_code(engine: Engine) -> None:
    before = run_of(engine, "found 812345 samples", STEPS)
    now = run_of(
        engine, "found 812001 samples", "WARNING gradient checkpointing is off", STEPS, OUT_OF_MEMORY, "bye now"
    )
    comparison = compared(before, now)
    assert [(new.line, new.text) for new in comparison.new_lines] == [(2, "WARNING gradient checkpointing is off")]


def test_of_many_new_lines_the_nearest_to_the_failure_are_reported(engine: Engine) -> None:
    strange = [f"phase {'abcdefghijklmnopqrstuvwxyz'[at % 26] * (3 + at // 26)} is over" for at in range(60)]
    comparison = compared(run_of(engine, "hello", STEPS), run_of(engine, strange, OUT_OF_MEMORY))
    assert len(comparison.new_lines) == MAX_NEW_LINES
    assert comparison.new_lines[-1].text == strange[-1]


def test_the_settings_that_are_the_same_are_counted(engine: Engine) -> None:
    one = run_of(engine, "Namespace(lr=0.1, workers=8)", STEPS)
    assert compared(one, one) == RunComparison(same=2)


def test_a_line_that_says_nothing_below_its_header_is_not_news(engine: Engine) -> None:
    header = "W1121 07:19:07.576000 16364 torch/distributed/run.py:874]"
    lines = [f"{header} ", f"{header} ****************", f"{header} Setting OMP_NUM_THREADS to 1"]
    comparison = compared(run_of(engine, "hello", STEPS), run_of(engine, lines, STEPS, OUT_OF_MEMORY))
    assert [new.line for new in comparison.new_lines] == [3]
