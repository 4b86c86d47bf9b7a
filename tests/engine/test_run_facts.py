import pytest

from tests.logs import BANNER, agent, report, steps, text, traceback
from torchtriage.domain.verdict import RunFacts
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

SAVE = [
    ("/job/train.py", 30, "<module>", "main()"),
    ("/env/lib/python3.11/site-packages/torch/serialization.py", 850, "save", "_save("),
]


def facts(engine: Engine, *parts: str | list[str]) -> RunFacts:
    return engine.triage(from_bytes(text(*parts))).run


def test_the_facts_of_a_failed_run(engine: Engine) -> None:
    run = facts(engine, BANNER, steps(range(2)), traceback("KeyError: 'image'", prefix="[rank1]: "), agent(1, 1), report((1, 1)),
                "2026-05-01 09:10:30,000 epilog")  # fmt: skip
    assert (run.launcher, run.phase, run.step, run.exit_code) == ("torchrun", "train", 19, 1)
    assert run.versions.get("torch") is None
    assert run.versions_inferred == {"torch": ">=2.4"}
    assert run.seconds_after_failure is not None


@pytest.mark.parametrize(("ended", "seconds"), [("09:20:05", 720.0), ("09:10:00", 660.0)])
def test_a_process_that_hangs_after_its_last_words_failed_before_others_spoke(
    engine: Engine, ended: str, seconds: float
) -> None:
    """The launcher's report tells when the process ended."""
    lines = [line.replace("09:10:00", ended) for line in report((1, 1))]
    run = facts(engine, BANNER, "2026-05-01 09:09:00,000 step 7", traceback("KeyError: 'image'", prefix="[rank1]: "),
                "[rank0]:[E501 09:20:00.000000 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: "
                "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600000 milliseconds",
                lines, "2026-05-01 09:21:00,000 epilog")  # fmt: skip
    assert run.seconds_after_failure == seconds


def test_a_killed_ranks_status_is_the_runs(engine: Engine) -> None:
    run = facts(engine, BANNER, steps(range(2)), agent(-9, 1), report((1, -9), [(0, -15)]))
    assert run.exit_code == -9


@pytest.mark.parametrize(("lines", "phase"), [([], "init"), (steps(range(2)), "train")])
def test_what_is_called_like_a_start_is_none_after_a_step(engine: Engine, lines: list[str], phase: str) -> None:
    raised = traceback("PlannerFault: no shard is left", [("/job/planner.py", 9, "prepare", "raise PlannerFault()")])
    assert engine.triage(from_bytes(text(lines, raised))).run.phase == phase


def test_the_traceback_shows_the_phase(engine: Engine) -> None:
    run = facts(engine, BANNER, steps(range(2)), traceback("RuntimeError: unexpected pos 64 vs 0", SAVE, "[rank0]: "))
    assert run.phase == "save"


WORKER = [
    "Traceback (most recent call last):",
    '  File "/job/train.py", line 58, in train',
    "    trainer.val(epoch)",
    '  File "/job/trainer.py", line 76, in val',
    "    for batch in loader:",
    '  File "/env/lib/python3.11/site-packages/torch/_utils.py", line 733, in reraise',
    "    raise exception",
    "ValueError: Caught ValueError in DataLoader worker process 0.",
    "Original Traceback (most recent call last):",
    '  File "/env/lib/python3.11/site-packages/torch/utils/data/_utils/worker.py", line 349, in _worker_loop',
    "    data = fetcher.fetch(index)",
    '  File "/job/samples.py", line 7, in crop',
    "    raise ValueError('too small')",
    "ValueError: too small",
]


def test_what_a_loader_was_asked_for_is_the_phase_of_its_worker(engine: Engine) -> None:
    verdict = engine.triage(from_bytes(text(steps([0]), WORKER)))
    assert verdict.run.phase == "evaluate"
    assert verdict.answer is not None
    assert "It failed in evaluation, after step 19." in verdict.answer.says


@pytest.mark.parametrize(
    "line",
    [
        "{'policy': 'octo', 'seed': 0, 'start_step': 8, 'device': 'cuda:0'}",
        "  0%|          | 0/1 [00:00<?, ?it/s]WARNING: using the experimental launcher.",
    ],
    ids=["settings", "a bar of one"],
)
def test_settings_and_a_bar_of_one_are_not_steps(engine: Engine, line: str) -> None:
    assert facts(engine, line, traceback("KeyError: 'image'")).step is None


@pytest.mark.parametrize(
    ("function", "expected"),
    [("main", "The run was at epoch 3 of 50."), ("evaluate", "It failed in evaluation, at epoch 3 of 50.")],
)
def test_a_run_that_counts_epochs_alone_is_placed_by_them(engine: Engine, function: str, expected: str) -> None:
    raised = traceback("KeyError: 'image'", [("/job/train.py", 9, function, "show(sample['image'])")])
    answer = engine.triage(from_bytes(text("Epoch 3/50, loss: 0.61", raised))).answer
    assert answer is not None
    assert answer.says.endswith(expected)


def test_a_bar_of_epochs_counts_no_steps(engine: Engine) -> None:
    of_steps = "step:   3%|▎ | 1/37 [00:19<11:42, 19.52s/it, loss=0.03]"
    of_epochs = "epoch:  38%|███▊ | 30/80 [3:16:44<5:27:54, 393s/it]"
    verdict = engine.triage(from_bytes(text(of_steps, of_epochs, traceback("KeyError: 'image'"))))
    assert verdict.run.step == 1
    assert "30" in {str(fact.value) for fact in verdict.facts if fact.name == "epoch"}


def test_a_bar_that_has_just_begun_does_not_count_the_steps_reported_after_it(engine: Engine) -> None:
    line = "  0%|          | 0/569 [00:00<?, ?it/s]epoch: 4  step: 359  loss: 20.40"
    verdict = engine.triage(from_bytes(text(line, traceback("KeyError: 'image'"))))
    assert verdict.run.step == 359
    assert "total_steps" not in {fact.name for fact in verdict.facts}


def test_a_printed_version_is_not_inferred(engine: Engine) -> None:
    run = facts(engine, "PyTorch version: 2.6.0+cu124", BANNER, traceback("KeyError: 'image'"))
    assert run.versions["torch"] == "2.6.0+cu124"
    assert run.versions_inferred == {}


def test_what_the_log_does_not_show_is_null(engine: Engine) -> None:
    run = facts(engine, "KeyError: 'image'")
    assert (run.launcher, run.world_size, run.phase, run.step, run.started, run.exit_code) == (None,) * 6
    assert (run.versions, run.versions_inferred, run.seconds_after_failure) == ({}, {}, None)
