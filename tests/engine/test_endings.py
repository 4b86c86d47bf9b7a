"""A run is healthy only where it is seen to end well, or to go on to its last line, and nothing speaks against it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.engine.test_engine import triage
from tests.logs import BANNER, steps, text, traceback
from torchtriage.answer.first_screen import first_screen
from torchtriage.causality.ending import ENDINGS
from torchtriage.domain.verdict import Verdict
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes, open_path

STEPS = [f"step {step} loss {3 / (step + 1):.3f}" for step in range(0, 300, 10)]
BAR = [f" 45%|████▌     | 45/100 [00:{second:02}<00:12,  4.50it/s]" for second in range(30)]


def with_job(engine: Engine, job: Mapping[str, str], *lines: str) -> Verdict:
    return engine.triage(from_bytes(text(*lines)), known=job)


@pytest.mark.parametrize(
    "last",
    [
        "Error in sys.excepthook:",
        "node-3:812:1200 [2] transport/net.cc:77 NCCL WARN NET/IB : something that nobody knows",
        "F0501 09:00:00.123456 812 store.cc:77] Check failed: a == b (1 vs. 2)",
        "Terminating process",
        "python terminated abnormally",
        "bash: line 1: foo: command not found",
        "/bin/sh: 1: Cannot fork",
        "./train.sh: line 12: syntax error near unexpected token",
        "Killed",
        "exit code: 137",
        "Exited with exit code 1",
        "JobState=FAILED Reason=NonZeroExitCode",
        "4711         train      gpu      lab         8     FAILED      1:0",
        "client_loop: send disconnect: Broken pipe",
        "Received SIGTERM, stopping",
        "已杀死",
        'Traceback (most recent call last):\n  File "/data/train.py", line 12, in main',
        "During handling of the above exception, another exception occurred:",
        "^C",
        "Training crashed at step 390",
        "Giving up after 5 attempts",
        "Worker 2 is not alive anymore, shutting down",
        "GPU 3 is lost",
        "[12345.678] NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.",
        "[1]+  Stopped                 python train.py",
        "[1]+  Exit 1                  python train.py > log 2>&1",
        "srun: Force Terminated StepId=812.0",
        "the quartz in rack 4 has cracked",
        "STOPPED",
        "SIGBUS",
        "write: quota exceeded",
        "Getötet",
        "进程被系统终止",
    ],
)
def test_a_run_that_ends_in_such_words_is_not_healthy(engine: Engine, last: str) -> None:
    assert triage(engine, STEPS, last).outcome != "healthy"
    assert (
        triage(engine, STEPS, last, "Training completed").outcome == "healthy"
        or last in ("Killed", "已杀死")
        or (triage(engine, STEPS, last, "Training completed").root_cause is not None)
    )


def test_a_run_whose_last_words_speak_of_a_crash_is_inconclusive(
    engine: Engine, decided: Callable[[], set[str]]
) -> None:
    assert triage(engine, STEPS, "Training crashed at step 390").outcome == "inconclusive"
    assert {"last-words"} <= decided()


@pytest.mark.parametrize(
    "last",
    [
        "Evaluating...",
        "Saving model checkpoint to out/checkpoint-300",
        "val acc 0.551",
        "UserWarning: the argument is deprecated",
        "2026-05-01 10:41:00,112 - trainer - INFO - here we are",
        "[rank0]:[W1004 15:16:15.503072590 ProcessGroupNCCL.cpp:1479] Warning: WARNING: destroy_process_group() was not "
        "called before program exit, which can leak resources.",
    ],
)
def test_a_run_continues_when_its_last_line_is_about_its_work(
    engine: Engine, last: str, decided: Callable[[], set[str]]
) -> None:
    assert triage(engine, STEPS, last).outcome == "healthy"
    assert {"goes-on"} <= decided()


def test_a_server_whose_last_line_is_nobodys_is_not_seen_to_continue(engine: Engine) -> None:
    up = ["INFO:     Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)"]
    served = [f'INFO:     10.0.0.3:410{port} - "POST /v1/completions HTTP/1.1" 200 OK' for port in range(10, 30)]
    assert triage(engine, up, served).outcome == "healthy"
    assert triage(engine, up, served, "the quartz in rack 4 has cracked").outcome == "inconclusive"


def test_a_last_line_in_a_form_that_was_printed_before_is_not_a_last_word(engine: Engine) -> None:
    rows = [[f"step {step} loss {3 / step:.3f}", f"lap {step}: the cat sat"] for step in range(10, 200, 10)]
    assert triage(engine, *rows).outcome == "healthy"
    assert triage(engine, *rows, [f"the dog sat for {minute} minutes" for minute in range(9)]).outcome != "healthy"


def test_a_bar_that_fills_once_an_epoch_shows_more_than_one_step(engine: Engine) -> None:
    bars = [f"Train epoch {epoch}: 100%|##########| 49/49 [00:09<00:00, 12.01it/s, avg=3.9]" for epoch in range(4)]
    assert triage(engine, bars).outcome == "healthy"
    assert triage(engine, bars[:1] * 9).outcome != "healthy"


def test_trials_that_finish_are_steps_and_their_parameters_are_none(engine: Engine) -> None:
    def trial(number: int) -> str:
        best = (
            f"Trial {number} finished with value: 0.8 and parameters: {{'batch': 512, 'lr': 0.001}}. Best is trial 0."
        )
        return f"[I 2026-05-01 09:{number:02}:00,220] {best}"

    failed = (
        "[W 2026-05-01 09:04:00,220] Trial 4 failed with parameters: {'batch': 512} because of the following error: "
    )
    verdict = triage(
        engine, BANNER, [trial(n) for n in range(4)], traceback("torch.OutOfMemoryError: CUDA out of memory.")
    )
    assert [fact.value for fact in verdict.facts if fact.name == "step"] == []
    caught = [failed, *traceback("KeyError: 'x'", [("/job/tune.py", 70, "objective", "return loss[x]")])]
    assert (
        triage(engine, BANNER, [trial(n) for n in range(4)], caught, [trial(n) for n in range(5, 40)]).outcome
        == "healthy"
    )


def test_a_bar_whose_time_falls_is_of_a_loop_that_began_again(engine: Engine) -> None:
    bars = [f"Training: 100%|##########| 28/28 [{time}<00:00, 10.5s/it]" for time in ("04:58", "04:55", "04:54")]
    assert triage(engine, BANNER, bars).outcome == "healthy"
    redrawn = [f"Training: 100%|##########| 28/28 [{time}<00:00, 10.5s/it]" for time in ("04:54", "04:55", "05:58")]
    assert triage(engine, BANNER, redrawn).outcome == "inconclusive"


@pytest.mark.parametrize(
    "line",
    [
        "2025-08-17 00:43:39.762293: E external/local_xla/xla/stream_executor/cuda/cuda_dnn.cc:9261] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered",
        "E0000 00:00:1742409791.660040 3527618 cuda_blas.cc:1418] Unable to register cuBLAS factory: Attempting to register factory for plugin cuBLAS when one has already been registered",
        "2025-06-01 23:33:50.315531: E external/local_xla/xla/stream_executor/cuda/cuda_timer.cc:86] Delay kernel timed out: measured time has sub-optimal accuracy. There may be a missing warmup execution, please investigate in Nsight Systems.",
    ],
)
def test_what_tensorflow_calls_an_error_on_every_start_is_no_last_word(engine: Engine, line: str) -> None:
    verdict = triage(engine, STEPS, [line, "Training finished"])
    assert verdict.outcome == "healthy"
    assert triage(engine, STEPS, [line]).outcome == "healthy"


def test_a_trainer_that_had_no_batch_did_not_end_well(engine: Engine) -> None:
    verdict = triage(engine, BANNER, ["`Trainer.fit` stopped: No training batches."])
    assert verdict.root_cause is not None
    assert verdict.root_cause.entry == "lightning.misconfiguration"
    assert triage(engine, BANNER, STEPS, ["`Trainer.fit` stopped: `max_epochs=3` reached."]).outcome == "healthy"


@pytest.mark.parametrize("seems", ["to be not", "not to be"])
def test_a_trainer_without_a_sample_did_not_end_well_whatever_it_says_then(engine: Engine, seems: str) -> None:
    lines = [
        f"  0%|          | 0/1000 [00:00<?, ?it/s]There seems {seems} a single sample in your epoch_iterator, stopping"
        " training at step 0! This is expected if you're using an IterableDataset and set num_steps (1000) higher than"
        " the number of available samples.",
        "Training completed. Do not forget to share your model on huggingface.co/models =)",
        "{'train_runtime': 0.8112, 'train_samples_per_second': 78894.1, 'train_loss': 0.0, 'epoch': 0}",
    ]
    verdict = triage(engine, BANNER, lines)
    assert verdict.root_cause is not None
    assert verdict.root_cause.entry == "hf.trainer"
    again = triage(engine, BANNER, lines, [f"step {n} loss 2.{n}" for n in range(1, 9)], "Training completed")
    assert again.outcome == "healthy"


def test_the_wait_status_of_a_compiler_is_not_the_jobs(engine: Engine) -> None:
    told = "W tensorflow/stream_executor/gpu/asm.cc:314] Internal: ptxas exited with non-zero error code 256, output: "
    verdict = triage(engine, BANNER, told, "This message will be only logged once.")
    assert verdict.answer is not None
    assert "256" not in verdict.answer.says


@pytest.mark.parametrize(
    "loads",
    [
        ["Loading python3/3.8.11", "  Loading requirement: gcc/10.3.0"],
        ["Loaded module: python3/3.8.11"],
        ['Lmod is automatically replacing "gcc/9.3.0" with "intel/2020.1".'],
    ],
)
def test_a_job_that_loads_its_modules_is_another_run_than_the_one_above(engine: Engine, loads: list[str]) -> None:
    above = (
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
    )
    verdict = triage(engine, loads, above, loads, traceback("NameError: name 'labels' is not defined"))
    assert verdict.root_cause is not None
    assert verdict.root_cause.entry == "usage.python-error"


def test_a_log_of_another_program_is_named_as_such(engine: Engine, decided: Callable[[], set[str]]) -> None:
    served = [
        f'10.0.0.{at} - - [21/Nov/2026:10:00:{at:02} +0000] "GET /a/{at} HTTP/1.1" 200 612' for at in range(1, 31)
    ]
    verdict = triage(engine, *served)
    assert verdict.outcome == "inconclusive"
    assert verdict.answer is not None
    assert "another program" in verdict.answer.says
    assert {"another-program"} <= decided()


@pytest.mark.parametrize(
    "text_of_no_run",
    [
        "hello world",
        "my training is slow",
        "训练很慢怎么办",
        "import torch\nmodel = Net()\nloss = model(x)\nloss.backward()",
        "$ ls\ntrain.py  data\n$ nvidia-smi",
    ],
)
def test_what_is_not_a_run_is_inconclusive(engine: Engine, text_of_no_run: str) -> None:
    verdict = triage(engine, *text_of_no_run.split("\n"))
    assert verdict.outcome == "inconclusive"
    assert verdict.answer is not None
    assert verdict.answer.says
    assert verdict.answer.unknown
    assert verdict.answer.steps


@pytest.mark.parametrize(
    "end",
    [
        ["{'train_runtime': 812.1, 'train_samples_per_second': 12.1, 'train_loss': 0.31, 'epoch': 3.0}"],
        ["`Trainer.fit` stopped: `max_epochs=10` reached."],
        ["[exiting program at iteration 5000] datetime: 2026-05-01 09:00:00"],
        [':::MLLOG {"namespace": "", "key": "run_stop", "value": null, "metadata": {"status": "success"}}'],
        ["[2026-05-01 09:00:00,100] [INFO] [launch.py:351:main] Process 4711 exits successfully."],
        ["Training finished iteration 12 at 2026-05-01 09:00:00. Total running time: 1h"],
        ["done training in 812.4 seconds"],
        ["Finished training", "", "real\t10m1.1s"],
        ["训练完成"],
    ],
)
def test_the_last_words_of_frameworks_prove_a_good_end(
    engine: Engine, end: list[str], decided: Callable[[], set[str]]
) -> None:
    assert triage(engine, BANNER, end).outcome == "healthy"
    assert {"good-end"} <= decided()


def test_steps_that_continue_to_the_last_line_are_healthy(engine: Engine) -> None:
    assert triage(engine, BANNER, STEPS).outcome == "healthy"
    assert triage(engine, steps(range(8), count=2)).outcome == "healthy"
    assert triage(engine, BANNER, STEPS[:1]).outcome == "inconclusive"


def test_a_bar_that_is_drawn_again_at_the_same_step_is_not_progress(engine: Engine) -> None:
    assert triage(engine, BANNER, BAR).outcome == "inconclusive"
    assert (
        triage(engine, BANNER, [line.replace("45/100", f"{at}/100") for at, line in enumerate(BAR)]).outcome
        == "healthy"
    )


def test_what_begins_and_shows_no_end_is_inconclusive(engine: Engine) -> None:
    verdict = triage(engine, BANNER, "Loading checkpoint shards: 100%|████| 4/4 [00:02<00:00]", "building the model")
    assert verdict.outcome == "inconclusive"
    assert "building the model" in first_screen(verdict, "en").what


def test_a_step_far_above_the_end_is_reported_with_what_follows(engine: Engine) -> None:
    verdict = triage(engine, STEPS, [f"exporting part {part} of the archive" for part in "abcdefghijklmnopqrst" * 5])
    assert verdict.outcome == "inconclusive"
    assert "290" in first_screen(verdict, "en").what


@pytest.mark.parametrize(
    ("lines", "missing", "says"),
    [
        ([*STEPS, "merging the shards", "packing the archive"], "stopped",
         "The last step is 290; 2 other lines follow, and none shows a good end."),
        ([BANNER, STEPS[0], "preparing the second stage"], "stands-still", "a single step, 0, and no failure or end"),
        ([BANNER, "NCCL version 2.18.5+cuda12.1", "preparing the first stage"], "began", "the start of a run, but no step"),
        (["a b c", "d e f"] * 4, "no-run", "no training step, no failure and no end"),
    ],
)  # fmt: skip
def test_an_inconclusive_answer_says_what_is_missing(engine: Engine, lines: list[str], missing: str, says: str) -> None:
    verdict = triage(engine, lines)
    assert verdict.answer is not None
    assert verdict.answer.values["missing"] == missing
    assert says in first_screen(verdict, "en").what


@pytest.mark.parametrize(
    ("job", "says"),
    [
        ({"exit_code": "137"}, "exit 137 is SIGKILL"),
        ({"exit_code": "139"}, "exit 139 is SIGSEGV"),
        ({"exit_code": "-15"}, "exit -15 is SIGTERM"),
        ({"exit_code": "1"}, "exit code 1"),
        ({"state": "OUT_OF_MEMORY"}, "OUT_OF_MEMORY"),
        ({"state": "failed"}, "failed"),
    ],
)
def test_a_job_with_a_bad_exit_status_is_not_healthy(
    engine: Engine,
    job: dict[str, str],
    says: str,
    decided: Callable[[], set[str]],
) -> None:
    verdict = with_job(engine, job, *STEPS)
    assert verdict.outcome == "inconclusive"
    assert says in first_screen(verdict, "en").what
    assert with_job(engine, {"exit_code": "0", "state": "COMPLETED"}, *STEPS).outcome == "healthy"
    assert {"exit-status"} <= decided()


def test_an_exit_status_leads_to_where_it_is_explained(engine: Engine) -> None:
    killed = with_job(engine, {"exit_code": "137", "job": "4711"}, *STEPS).answer
    assert killed is not None
    assert killed.steps[0].run is not None
    assert "oom" in killed.steps[0].run
    assert killed.steps[1].run is not None
    assert killed.steps[1].run.startswith("sacct -j 4711 ")


def test_a_question_leads_to_the_symptom_search(engine: Engine, decided: Callable[[], set[str]]) -> None:
    answer = triage(engine, "my training is slow").answer
    assert answer is not None
    assert answer.steps[0].run == "torchtriage kb search 'my training is slow'"
    harmful = triage(engine, "my training is slow'; rm -rf /").answer
    assert harmful is not None
    assert harmful.steps[0].run is None
    assert {"question"} <= decided()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_inconclusive_answer_is_short_and_whole(engine: Engine, lang: str) -> None:
    said = set()
    for lines in (
        ["hello"],
        STEPS[:1],
        [BANNER],
        [*STEPS, "exit code 9"],
        [*STEPS, "Terminating process"],
        ["a b c"] * 9,
    ):
        verdict = engine.triage(from_bytes(text(*lines)), "zh" if lang == "zh" else "en")
        assert verdict.answer is not None
        screen = first_screen(verdict, "zh" if lang == "zh" else "en")
        assert "{" not in screen.what
        assert len(screen.what.split()) <= 40
        assert all(len(step.do.split()) <= 20 for step in screen.steps)
        assert ("日志" in screen.what or "文本" in screen.what or "输出" in screen.what) is (lang == "zh")
        said.add(verdict.answer.values["missing"])
    assert len(said) >= 5
    assert said <= {rule.name for rule in ENDINGS}


def test_what_is_below_a_good_end_is_clean_up(engine: Engine) -> None:
    end = "Training completed in 31 s"
    assert triage(engine, STEPS, end, "wandb: ERROR Failed to sync: run abc12").outcome == "healthy"
    assert triage(engine, STEPS, end, "exit code: 1").outcome == "inconclusive"


def test_a_server_that_answers_requests_is_healthy(engine: Engine, decided: Callable[[], set[str]]) -> None:
    up = "INFO:     Application startup complete."
    served = ['INFO:     10.0.0.7:52196 - "GET /health HTTP/1.1" 200 OK'] * 3
    assert triage(engine, BANNER, up, served).outcome == "healthy"
    assert triage(engine, BANNER, up).outcome == "inconclusive"
    assert {"serves"} <= decided()


SOURCE = """import torch
import torch.distributed as dist

def main():
    for step, batch in enumerate(loader):
        loss = model(batch)
        if torch.isnan(loss):
            raise RuntimeError('loss is nan')
"""
MANUAL = """# When a run fails

This page lists common messages.

## Memory
`torch.OutOfMemoryError: CUDA out of memory` means that the batch does not fit.

## Timeouts
If you see `Watchdog caught collective operation timeout`, look for the rank that did not come.
"""


def test_errors_that_a_program_or_a_manual_quotes_are_not(engine: Engine) -> None:
    assert triage(engine, *SOURCE.split("\n")).outcome == "inconclusive"
    assert triage(engine, *MANUAL.split("\n")).outcome == "inconclusive"


def test_an_error_below_code_or_in_a_question_is_still_found(engine: Engine) -> None:
    line = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    below = triage(engine, *SOURCE.split("\n"), line).root_cause
    asked = triage(engine, *MANUAL.split("\n"), "I get this, please help:", line).root_cause
    assert below is not None
    assert asked is not None
    assert (below.entry, asked.entry) == ("cuda.oom", "cuda.oom")


def test_a_record_that_a_logger_could_not_write_is_no_cause(engine: Engine, decided: Callable[[], set[str]]) -> None:
    result = traceback(
        "TypeError: not all arguments converted", [("/usr/lib/python3.11/logging/__init__.py", 9, "emit", "x")]
    )
    call = [
        "Call stack:",
        '  File "/data/train.py", line 88, in <module>',
        "    main()",
        "Message: 'lr %s'",
        "Arguments: (1, 2)",
    ]
    logged = ["--- Logging error ---", *result, *call]
    assert triage(engine, STEPS, logged, "step 300 loss 0.1").outcome == "healthy"
    assert triage(engine, STEPS, logged, "Training completed").outcome == "healthy"
    measured = triage(engine, STEPS, logged, "val loss: 1.203 acc: 0.51")  # no step, and it is no last word either
    assert measured.outcome == "healthy"
    failed = triage(engine, STEPS, logged, traceback("KeyError: 'lr'")).root_cause
    assert failed is not None
    assert failed.exception is not None
    assert failed.exception.type == "KeyError"
    assert {"logger-could-not-write"} <= decided()


CANCELLED = "slurmstepd: error: *** STEP 4711.0 ON gpu-1 CANCELLED AT 2026-05-01T09:00:00 ***"
OUT_OF_MEMORY = traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")


def test_an_exception_after_the_job_was_cancelled_is_no_cause(engine: Engine, decided: Callable[[], set[str]]) -> None:
    reset = traceback("ConnectionResetError: [Errno 104] Connection reset by peer")
    root = triage(engine, BANNER, STEPS, CANCELLED, reset).root_cause
    assert root is not None
    assert root.entry == "slurm.cancelled"
    assert {"torn-down"} <= decided()
    before = ["srun: error: gpu-1: task 0: Exited with exit code 1", CANCELLED]
    late = triage(engine, BANNER, STEPS, before, traceback("KeyError: 'lr'")).root_cause
    assert late is not None
    assert late.exception is not None
    named = triage(engine, BANNER, STEPS, CANCELLED, OUT_OF_MEMORY).root_cause
    assert named is not None
    assert named.entry == "cuda.oom"


def test_each_nohup_begins_a_run_of_its_own(engine: Engine) -> None:
    begun = "nohup: ignoring input"
    verdict = triage(engine, begun, STEPS, OUT_OF_MEMORY, begun, STEPS)
    assert verdict.outcome == "healthy"
    assert [run.entry for run in verdict.earlier_runs] == ["cuda.oom"]
    failed = triage(engine, begun, STEPS, "Training completed", begun, STEPS, OUT_OF_MEMORY)
    assert failed.root_cause is not None
    assert [run.outcome for run in failed.earlier_runs] == ["healthy"]


def test_a_folder_of_paddles_workers_is_a_run(engine: Engine, tmp_path: Path) -> None:
    for rank in range(2):
        (tmp_path / f"workerlog.{rank}").write_bytes(text(*STEPS, *(OUT_OF_MEMORY if rank else [])))
    root = engine.triage(open_path(tmp_path)).root_cause
    assert root is not None
    assert (root.entry, root.local_rank) == ("cuda.oom", 1)


@pytest.mark.parametrize(
    ("row", "outcome"),
    [
        ("[1/90][{at}/500] D: 0.31 G: 1.2{at}", "healthy"),
        ("ep {at} tr 0.{at} va 0.5", "healthy"),
        ("gpu-1:812:1200 [2] NCCL INFO Channel {at}/0 : 1[1] -> 4[0] via NET/IB/0", "inconclusive"),
        ("gpu 3 at 61.5 C", "inconclusive"),
    ],
)
def test_rows_that_count_up_next_to_a_measured_value_show_that_a_run_continues(
    engine: Engine, row: str, outcome: str
) -> None:
    rows = [row.format(at=at) for at in range(10, 60, 10)]
    assert triage(engine, BANNER, "torch 2.6.0, world size 8, training on 8 GPUs", rows).outcome == outcome


def test_a_manual_may_quote_the_words_of_a_collective(engine: Engine) -> None:
    manual = ["# Troubleshooting", "", "If you see the following error, reduce the batch size.", "", "```",
              "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB", "```", "", "## NCCL", "",
              "When a rank is missing, NCCL may report:", "```", "Watchdog caught collective operation timeout", "```"]  # fmt: skip
    assert triage(engine, manual).outcome == "inconclusive"
    printed = (
        "[rank3]:[E501 09:20:00.1 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout: "
    )
    assert triage(engine, [*manual, printed]).outcome == "explained"


# Forms of progress that name no `step 3`: a run in one of them goes on, tells how far it came, and is never healthy when
# it died.
FORMS = {
    "a GAN": ([f"[3/25][{step}/1583]\tLoss_D: 0.{step}\tLoss_G: 2.31\tD(x): 0.91" for step in (10, 20, 30)], 30),
    "stable-baselines": (
        [
            line
            for step in (2048, 4096)
            for line in ("-" * 41, "| time/                   |             |", f"|    total_timesteps      | {step}        |",
                         "| train/                  |             |", "|    loss                 | 20.1        |")
        ],
        4096,
    ),
    "structured, message": ([f'{{"msg":"train","step":{step},"loss":0.7,"ts":1717171720.1}}' for step in (1, 2, 3)], 3),
    "structured, event": ([f'{{"level":"info","event":"step","step":{step},"loss":2.3}}' for step in (100, 200)], 200),
    "loguru": (
        [
            f'{{"text":"2024-05-01 10:00:{step} | INFO | train:41 - step\\n","record":{{"extra":{{"step":{step},"loss":2.3}},'
            f'"level":{{"name":"INFO"}},"message":"step","time":{{"timestamp":17145576{step}.1}}}}}}'
            for step in (10, 20, 30)
        ],
        30,
    ),
    "Lightning's CSV": (["epoch,step,train_loss", "0,49,2.3012", "0,99,2.1120", "1,149,1.8733"], 149),
    "columns": (["epoch     train_loss  accuracy", "0         7.321094    0.061251", "1         6.703211    0.093312"], None),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "step"), FORMS.values(), ids=FORMS)
def test_progress_in_other_forms_continues_and_is_reported(engine: Engine, lines: list[str], step: int | None) -> None:
    verdict = triage(engine, *lines)
    assert (verdict.outcome, verdict.run.step) == ("healthy", step)


@pytest.mark.parametrize("lines", [lines for lines, _ in FORMS.values()], ids=FORMS)
@pytest.mark.parametrize(
    "end",
    [
        "Killed",
        "giving up: the plan is void",
        '{"level":"error","event":"worker died"}',
        "Traceback (most recent call last):",
    ],
)
def test_progress_in_other_forms_is_not_healthy_where_the_run_died(engine: Engine, lines: list[str], end: str) -> None:
    assert triage(engine, *lines, end).outcome != "healthy"


def test_the_newest_loss_of_a_record_is_reported(engine: Engine) -> None:
    lines, _ = FORMS["structured, event"]
    verdict = triage(engine, *lines, traceback("flux.TornError: 3 of 4"))
    assert {fact.name: fact.text for fact in verdict.facts if fact.name == "last_loss"} == {"last_loss": "2.3"}


def test_an_ignored_exception_at_the_end_is_reported_by_its_own_words(engine: Engine) -> None:
    ignored = [
        "Exception ignored in: <function Loader.__del__ at 0x7f2c1c0e3d30>",
        *traceback("AssertionError: can only test a child process"),
    ]
    verdict = triage(engine, STEPS, ignored)
    assert (verdict.outcome, verdict.answer is not None) == ("inconclusive", True)
    assert verdict.answer is not None
    assert "`AssertionError: can only test a child process`" in verdict.answer.says
