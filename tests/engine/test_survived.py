"""What a run survived, and what ended it although lines stand behind."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.logs import BANNER, NO_FAILURE, agent, report, steps, text, traceback
from torchtriage.domain.verdict import Verdict
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes, open_path

FRAMES = [("/job/train.py", 30, "<module>", "main()"), ("/job/train.py", 20, "main", "loss = step(batch)")]
MISSING = traceback("KeyError: 'labels'", FRAMES)
INNER = [("/job/loader.py", 12, "fetch", "record = read(index)"), ("/job/loader.py", 4, "read", "return rows[index]")]


def triage(engine: Engine, *parts: str | list[str]) -> Verdict:
    return engine.triage(from_bytes(text(*parts)))


def losses(first: int, count: int) -> list[str]:
    return [f"step {step} loss {3 / (step + 1):.4f}" for step in range(first, first + count)]


def entry(verdict: Verdict) -> str | None:
    return verdict.root_cause.entry if verdict.root_cause else None


@pytest.mark.parametrize(
    "behind",
    [
        losses(20, 160),  # What a buffer held back is written after the traceback.
        [
            "wandb:",
            "wandb: Run summary:",
            "wandb: loss 0.2",
            "wandb: 🚀 View run sun-7 at: https://tracker.example/r/7",
        ],
        ["Map: 100%|██████████| 2000/2000 [00:02<00:00, 900.1 examples/s]"] * 5,
        ["left: /job/out/epoch=0-step=5000.ckpt"] * 5,
    ],
    ids=["buffered", "tracker", "preparing", "files"],
)
def test_an_uncaught_exception_of_the_main_program_ends_the_run(
    engine: Engine, behind: list[str], decided: Callable[[], set[str]]
) -> None:
    assert entry(triage(engine, losses(0, 20), MISSING, behind)) == "usage.python-error"
    assert {"main-program-ended"} <= decided()


def test_an_exit_status_after_the_late_output_does_not_hide_the_exception(engine: Engine) -> None:
    verdict = triage(engine, losses(0, 5), MISSING, losses(5, 160), "srun: error: n3: task 0: Exited with exit code 1")
    assert entry(verdict) == "usage.python-error"


def test_a_run_is_healthy_when_a_restarted_script_trains_on(engine: Engine, decided: Callable[[], set[str]]) -> None:
    assert triage(engine, losses(0, 20), MISSING, losses(0, 600)).outcome == "healthy"
    assert triage(engine, losses(0, 20), MISSING, losses(0, 20), "Training finished").outcome == "healthy"
    assert {"another-program-went-on"} <= decided()


def test_a_logged_exception_is_survived_where_steps_follow(engine: Engine) -> None:
    logged = ["ERROR:job.loader:skipping a record", *traceback("KeyError: 'labels'", INNER)]
    assert triage(engine, losses(0, 20), logged, losses(20, 160)).outcome == "healthy"


def test_a_rank_has_not_survived_when_it_falls_silent_while_others_print(
    engine: Engine, decided: Callable[[], set[str]]
) -> None:
    failed = traceback("KeyError: 'labels'", INNER, prefix="[rank3]: ")
    verdict = triage(engine, steps(range(4)), failed, steps(range(3), 20, 60))
    assert entry(verdict) == "usage.python-error"
    assert verdict.root_cause is not None
    assert verdict.root_cause.rank == 3
    assert triage(engine, steps(range(4)), failed, steps(range(4), 20, 60)).outcome == "healthy"
    assert {"rank-fell-silent"} <= decided()


def test_an_error_quoted_after_the_last_step_is_read(engine: Engine) -> None:
    quoted = 'It stops every time, it says "AssertionError: You should call prepare first" and that is all'
    assert entry(triage(engine, losses(0, 4), quoted)) == "usage.python-error"
    assert triage(engine, quoted, losses(0, 4)).outcome == "healthy"


def test_an_error_quoted_next_to_the_launchers_line_is_the_cause(engine: Engine) -> None:
    quoted = 'my run ends with "AssertionError: You should call prepare first"'
    assert entry(triage(engine, quoted, agent(1))) == "usage.python-error"
    assert entry(triage(engine, "my run ends, no idea why", agent(1))) == "elastic.child-failed"


def test_code_that_a_launchers_traceback_quotes_is_not_a_message(engine: Engine) -> None:
    frames = [("/env/site-packages/torch/distributed/run.py", 9, "main", "raise RendezvousConnectionError(")]
    refused = "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed."
    root = triage(engine, traceback(refused, frames)).root_cause
    assert root is not None
    assert root.evidence[0].text == refused


def test_an_agent_that_gave_up_is_not_survival(engine: Engine) -> None:
    parts = (BANNER, losses(0, 20), MISSING, losses(20, 160), agent(1), report((0, 1)))
    assert entry(triage(engine, *parts)) == "usage.python-error"


def test_waiting_at_a_barrier_is_no_failure_when_the_barrier_was_passed(
    engine: Engine, decided: Callable[[], set[str]]
) -> None:
    waiting = (
        "05/01/2026 09:00:00 - INFO - torch.distributed.distributed_c10d -   Waiting in store based barrier to initialize "
        "process group for rank: 3, key: store_based_barrier_key:1 (world_size=6, worker_count=4, timeout=0:30:00)"
    )
    passed = "INFO:torch.distributed.distributed_c10d:Rank 0: Completed store-based barrier for key:store_based_barrier_key:1 with 6 nodes."
    assert entry(triage(engine, [waiting])) == "elastic.rendezvous-timeout"
    assert triage(engine, [waiting, passed]).outcome in NO_FAILURE
    assert {"passed-the-barrier"} <= decided()


NO_SUCH_MODULE = traceback("ModuleNotFoundError: No module named 'fancy_attn'",
                           [("/job/models/__init__.py", 3, "<module>", "import fancy_attn")])  # fmt: skip


@pytest.mark.parametrize(
    ("queued", "placed", "expected"),
    [
        ("", "", "k8s.unschedulable"),
        ("", "  Normal   Scheduled  8m  default-scheduler  Successfully assigned ml/train-1 to gpu-7", None),
        ("pod/train-1  ", "9m  Normal  Scheduled  pod/train-2  Successfully assigned ml/train-2 to gpu-7", "k8s.unschedulable"),
    ],
)  # fmt: skip
def test_a_pod_that_could_not_be_scheduled_is_no_failure_when_it_was_scheduled_later(
    engine: Engine, queued: str, placed: str, expected: str | None, decided: Callable[[], set[str]]
) -> None:
    waits = f"  Warning  FailedScheduling  9m  {queued}default-scheduler  0/4 nodes are available: 4 Insufficient nvidia.com/gpu."
    assert entry(triage(engine, "Events:", waits, placed)) == expected
    assert ("pod-was-placed" in decided()) is (expected is None)


def test_a_gang_that_was_placed_at_last_is_not_a_failure(engine: Engine) -> None:
    waits = "  Warning  PodGroupPending  9m  vc-controller-manager  PodGroup ml:train unschedule,reason: 4/0 tasks in gang unschedulable: pod group is not ready"
    placed = "  Normal   Scheduled  8m  volcano  Successfully assigned ml/train-1 to gpu-7"
    assert entry(triage(engine, "Events:", waits)) == "k8s.unschedulable"
    assert entry(triage(engine, "Events:", waits, placed)) is None


def test_a_missing_module_is_no_failure_when_the_run_trains_without_it(
    engine: Engine, decided: Callable[[], set[str]]
) -> None:
    assert triage(engine, NO_SUCH_MODULE, losses(0, 20)).outcome == "healthy"
    assert {"did-without-module"} <= decided()
    assert entry(triage(engine, NO_SUCH_MODULE, losses(0, 4), MISSING)) == "usage.python-error"
    assert entry(triage(engine, NO_SUCH_MODULE, "step 0 begins")) == "env.import-error"
    line = "ImportError: fancy_attn is not installed; the plain one is used"
    assert triage(engine, line, losses(0, 3)).outcome == "healthy"


def test_a_caught_exception_is_no_cause_when_steps_and_an_uncaught_one_follow(
    engine: Engine, decided: Callable[[], set[str]]
) -> None:
    caught = traceback("OSError: [Errno 5] Input/output error: '/data/shard-3'", INNER)
    assert entry(triage(engine, losses(0, 4), caught, losses(4, 4), MISSING)) == "usage.python-error"
    assert entry(triage(engine, losses(0, 4), caught, MISSING)) == "storage.io-error"
    assert {"caught-and-printed"} <= decided()


def test_rays_envelope_gives_way_to_the_exception_in_it(engine: Engine) -> None:
    carried = ["ray.exceptions.RayTaskError(AssertionError): ray::Runner.run() (pid=5, ip=10.0.0.3)",
               '  File "/job/verl/trainer/ppo/ray_trainer.py", line 30, in check',
               "    assert size % least == 0, (", "AssertionError: the batch must be divisible by 16"]  # fmt: skip
    outer = traceback(carried[0], [("/job/verl/trainer/main_ppo.py", 40, "main", "run_ppo(config)")])
    verdict = triage(engine, "training with ray", outer, carried[1:])
    assert verdict.root_cause
    assert "divisible by 16" in verdict.root_cause.evidence[0].text


def test_what_training_continued_after_is_not_a_cause_of_what_ended_it(engine: Engine) -> None:
    caught = [*losses(0, 20), *traceback("OSError: [Errno 5] Input/output error: '/data/shard-3'", INNER)]
    assert entry(triage(engine, caught, losses(20, 20), "run.sh: line 4: 212 Killed    python train.py")) == (
        "process.oom-killed"
    )
    peers = "RuntimeError: [gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.4]:3121"
    assert entry(triage(engine, caught, losses(20, 2), peers)) == "storage.io-error"  # The others' late output.
    assert entry(triage(engine, caught, losses(20, 20), peers)) == "gloo.error"


def test_a_logged_failure_stays_where_the_only_other_one_was_caught(engine: Engine) -> None:
    caught = traceback("OSError: [Errno 5] Input/output error: '/data/shard-3'", INNER)
    log = [*losses(0, 20), *caught, *losses(20, 20), "2026-04-02 10:11:12 - train - ERROR - giving up", *MISSING]
    assert entry(triage(engine, log)) == "usage.python-error"


def test_a_warning_among_steps_is_no_cause_when_another_failure_ended_the_run(
    engine: Engine, decided: Callable[[], set[str]]
) -> None:
    again = "WARNING: ran out of memory: CUDA out of memory. Tried to allocate 2.00 GiB; retrying the batch"
    left = "srun: error: n3: task 0: Exited with exit code 1"
    assert entry(triage(engine, losses(0, 20), again, losses(20, 20), left)) == "elastic.child-failed"
    assert entry(triage(engine, losses(0, 20), again, losses(20, 2), left)) == "cuda.oom"
    assert {"steps-before-next-failure", "next-failure-ended-it"} <= decided()


def test_the_end_of_another_file_does_not_end_what_this_one_survived(engine: Engine, tmp_path: Path) -> None:
    again = "WARNING: ran out of memory: CUDA out of memory. Tried to allocate 2.00 GiB; retrying the batch"
    (tmp_path / "job.out").write_bytes(text(losses(0, 20), again, losses(20, 4)))
    (tmp_path / "srun.err").write_bytes(text("srun: error: n3: task 1: Exited with exit code 1"))
    assert entry(engine.triage(open_path(tmp_path))) == "elastic.child-failed"


def test_a_line_that_says_that_the_program_continues_is_not_a_cause_next_to_another(engine: Engine) -> None:
    kept = "ERROR: snapshot not written: [Errno 28] No space left on device: '/out/s4' - continuing without it"
    limit = "slurmstepd: error: *** JOB 77 ON n3 CANCELLED AT 2026-04-02T10:00:00 DUE TO TIME LIMIT ***"
    assert entry(triage(engine, losses(0, 4), kept, losses(4, 4), limit)) == "slurm.time-limit"
    assert entry(triage(engine, kept)) == "storage.disk-full"


def test_an_nccl_warning_repeated_between_steps_is_survived(engine: Engine, decided: Callable[[], set[str]]) -> None:
    warned = "n3:41:77 [2] transport/nvls.cc:600 NCCL WARN Cuda failure 1 'invalid argument'"
    between = [warned, *losses(0, 2), warned, *losses(2, 4)]
    assert triage(engine, between).outcome == "healthy"
    assert {"nccl-took-another-way"} <= decided()
    assert entry(triage(engine, losses(0, 6), warned, warned)) == "nccl.unhandled-cuda-error"


def test_a_thread_of_the_loaders_that_fails_once_all_is_saved_is_not_a_failure(engine: Engine) -> None:
    pinning = "/env/lib/python3.11/site-packages/torch/utils/data/_utils/pin_memory.py"
    reading = "/usr/lib/python3.11/multiprocessing/connection.py"
    frames = [(pinning, 40, "do_one_step", "r = queue.get()"), (reading, 379, "_recv", "chunk = read(handle, left)")]
    trace = traceback("ConnectionResetError: [Errno 104] Connection reset by peer", frames)
    thread = ["Exception in thread Thread-7:", *trace]
    assert triage(engine, losses(0, 20), thread, "Results saved to out/runs/detect/a1").outcome == "healthy"
    assert triage(engine, losses(0, 20), thread).outcome != "healthy"


def test_an_exception_in_the_middle_that_was_caught_is_not_a_failure(engine: Engine) -> None:
    caught = traceback("OSError: [Errno 5] Input/output error: '/data/shard-3'", INNER)
    assert triage(engine, losses(0, 20), caught, losses(20, 20)).outcome == "healthy"
    assert entry(triage(engine, losses(0, 20), caught)) == "storage.io-error"


LOGGED = [
    "2026-05-01 09:12:01,440 - train - ERROR - training stopped",
    *traceback("RuntimeError: cannot reshape the batch of 7 rows into 2 groups", INNER),
]
SUMMARY = [
    "wandb: Waiting for W&B process to finish... (success).",
    *[f"wandb: {name:>16} 0.{number:02}" for number, name in enumerate(["loss", "lr", "grad_norm"] * 10)],
    "wandb: 🚀 View run sun-7 at: https://tracker.example/r/7",
]
IN_A_THREAD = [
    "Exception in thread Thread-3 (upload):",
    *traceback("OSError: [Errno 5] Input/output error: '/data/shard-3'", INNER),
]


def test_a_trackers_summary_after_a_logged_exception_is_not_a_good_end(
    engine: Engine, decided: Callable[[], set[str]]
) -> None:
    verdict = triage(engine, losses(0, 20), LOGGED, SUMMARY)
    assert verdict.outcome == "unexplained"
    assert verdict.root_cause
    assert "cannot reshape the batch" in verdict.root_cause.evidence[0].text
    assert {"logged-at-the-end"} <= decided()


def test_a_clean_shutdown_long_after_a_threads_exception_means_it_was_survived(
    engine: Engine, decided: Callable[[], set[str]]
) -> None:
    assert triage(engine, losses(0, 20), IN_A_THREAD, SUMMARY).outcome == "healthy"
    assert {"wound-up"} <= decided()
    assert entry(triage(engine, losses(0, 20), IN_A_THREAD)) == "storage.io-error"


def test_a_run_is_healthy_when_a_good_end_follows_a_logged_exception(
    engine: Engine, decided: Callable[[], set[str]]
) -> None:
    assert triage(engine, losses(0, 20), LOGGED, "Training finished").outcome == "healthy"
    assert {"run-ended-well"} <= decided()


def test_a_failure_before_a_good_end_is_no_cause_of_a_later_one(
    engine: Engine, decided: Callable[[], set[str]]
) -> None:
    log = [*losses(0, 20), *IN_A_THREAD, "Training finished", "exporting the weights", *MISSING]
    assert entry(triage(engine, log)) == "usage.python-error"
    assert {"ended-well"} <= decided()


def test_steps_are_reported_in_chinese_too(engine: Engine) -> None:
    steps_told = [f"第{step}步 损失 {3 / (step + 1):.4f}" for step in range(40)]
    caught = traceback("OSError: [Errno 5] Input/output error: '/data/shard-3'", INNER)
    assert triage(engine, steps_told[:20], caught, steps_told[20:]).outcome == "healthy"
    assert triage(engine, steps_told, caught, "训练完成，模型已保存").outcome == "healthy"


def test_how_slurm_says_that_a_task_ended_is_a_failure_of_a_run_that_trained(engine: Engine) -> None:
    killed = ["srun: error: c2: task 0: Killed", "srun: Force Terminated StepId=120.0"]
    assert entry(triage(engine, losses(0, 20), killed)) == "process.oom-killed"
    assert entry(triage(engine, losses(0, 20), MISSING, killed)) == "usage.python-error"


def test_refused_arguments_are_no_cause_when_the_script_was_started_again(
    engine: Engine, decided: Callable[[], set[str]]
) -> None:
    refused = ["usage: train.py [-h] [--size SIZE]", "train.py: error: unrecognized arguments: --sizes 7"]
    assert entry(triage(engine, refused)) == "usage.config"
    assert entry(triage(engine, refused, MISSING)) == "usage.python-error"
    assert entry(triage(engine, [line.replace("train", "plan") for line in refused], MISSING)) == "usage.config"
    assert {"refused-its-arguments"} <= decided()


def test_a_script_that_was_started_again_without_its_modules_failed_of_that(engine: Engine) -> None:
    stopped = traceback("KeyboardInterrupt", FRAMES)
    unloaded = traceback(
        "ModuleNotFoundError: No module named 'einops'", [("/job/train.py", 1, "<module>", "import einops")]
    )
    other = [line.replace("/job/train.py", "/job/plan.py") for line in unloaded]
    assert entry(triage(engine, stopped, losses(0, 20), unloaded, unloaded)) == "env.import-error"
    assert entry(triage(engine, stopped, losses(0, 20), other)) == "user.cancelled"


def test_that_tensorflow_registers_a_library_twice_is_not_a_failure(engine: Engine) -> None:
    twice = "E external/xla/cuda_fft.cc:477] Unable to register cuFFT factory: Attempting to register factory for plugin cuFFT when one has already been registered"
    dated = "2026-01-26 14:36:31.715885: "
    behind = [
        "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
        "loading the tokenizer",
    ]
    assert triage(engine, dated + twice, behind).outcome in NO_FAILURE


OUT_OF_MEMORY = traceback("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", FRAMES)
PROLOG = [
    "Loading cuda/12.1",
    "Loading python/3.11",
    "reading the table",
    "12000 rows",
    "model of 4 layers",
    "device: cuda",
]


def test_the_last_job_counts_when_jobs_append_to_one_file(engine: Engine, decided: Callable[[], set[str]]) -> None:
    assert entry(triage(engine, PROLOG, OUT_OF_MEMORY, PROLOG, MISSING)) == "usage.python-error"
    assert entry(triage(engine, PROLOG, MISSING, PROLOG, OUT_OF_MEMORY)) == "cuda.oom"
    unloaded = traceback(
        "ModuleNotFoundError: No module named 'einops'", [("/job/train.py", 1, "<module>", "import einops")]
    )
    assert entry(triage(engine, PROLOG, unloaded, PROLOG, OUT_OF_MEMORY)) == "cuda.oom"
    assert {"restarted-and-failed"} <= decided()


def test_missing_modules_are_the_cause_when_a_restarted_job_cannot_load_them(
    engine: Engine, decided: Callable[[], set[str]]
) -> None:
    unloaded = traceback(
        "ModuleNotFoundError: No module named 'einops'", [("/job/train.py", 1, "<module>", "import einops")]
    )
    assert entry(triage(engine, PROLOG, "world_size: 2", OUT_OF_MEMORY, PROLOG, unloaded)) == "env.import-error"
    assert {"restarted-without-modules"} <= decided()


@pytest.mark.parametrize(
    "later",
    [
        MISSING,  # of another process, right behind
        [*PROLOG, *(line.replace("/job/train.py", "/job/plot.py") for line in MISSING)],
        [*PROLOG, *traceback("KeyboardInterrupt", FRAMES)],
        [*PROLOG, *traceback("RuntimeError: [../gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.0.0.4]:3121", FRAMES)],
        ["world_size: 2", *PROLOG, *MISSING],
        [*PROLOG, *traceback("KeyError: 'labels'", FRAMES, prefix="[rank1]: ")],
    ],
    ids=["at once", "another script", "interrupted", "a lost peer", "two processes", "a rank"],
)  # fmt: skip
def test_what_failed_next_to_an_exception_is_not_a_later_job(engine: Engine, later: list[str]) -> None:
    assert entry(triage(engine, PROLOG, OUT_OF_MEMORY, later)) == "cuda.oom"


def answered(status: int) -> list[str]:
    return [
        "INFO:     Application startup complete.",
        *traceback("ValueError: maximum context length is 2048 tokens, 2297 were requested", INNER),
        f'INFO:     10.0.0.7:41234 - "POST /v1/chat/completions HTTP/1.1" {status}',
        'INFO:     10.0.0.7:52196 - "GET /health HTTP/1.1" 200 OK',
    ]


def test_a_refused_request_is_no_failure_of_a_server(engine: Engine, decided: Callable[[], set[str]]) -> None:
    assert triage(engine, BANNER, answered(400)).outcome == "healthy"
    assert triage(engine, BANNER, answered(500)).outcome != "healthy"
    begun = [
        line.replace("/job/loader.py", "/job/serve.py").replace("in fetch", "in <module>") for line in answered(400)
    ]
    assert triage(engine, BANNER, begun).outcome != "healthy"
    assert {"refused-one-request"} <= decided()


def test_code_that_dynamo_cannot_compile_is_no_failure_when_training_continues(
    engine: Engine, decided: Callable[[], set[str]]
) -> None:
    raised = "torch._dynamo.exc.TorchRuntimeError: Failed running call_function <built-in method ones>(*(1,), **{}):"
    frames = [("/env/lib/python3.11/site-packages/torch/_dynamo/utils.py", 1397, "run_node", "return node.target()")]
    for found in (
        "[2026-05-01 09:00:00,120] torch._dynamo.convert_frame: [WARNING] ",
        "W0501 09:00:00.120000 7 torch/_dynamo/convert_frame.py:824] ",
    ):
        failed = [found + "WON'T CONVERT forward /job/model.py line 8", *traceback(raised, frames, found)]
        assert triage(engine, BANNER, failed, losses(0, 4)).outcome == "healthy"
    assert triage(engine, BANNER, traceback(raised, frames), losses(0, 2)).outcome == "explained"
    assert {"logged-and-trained-on"} <= decided()


def test_a_server_that_was_started_again_and_is_up_failed_of_nothing_before(engine: Engine) -> None:
    failed = traceback("OSError: /models/a does not appear to have a file named config.json.")
    up = "INFO:     Uvicorn running on http://0.0.0.0:8777 (Press CTRL+C to quit)"
    assert triage(engine, BANNER, failed, up).outcome in NO_FAILURE
    assert triage(engine, BANNER, up, failed).outcome == "explained"
    assert triage(engine, BANNER, failed, up, failed).outcome == "explained"


@pytest.mark.parametrize(
    "line",
    [
        """Retrying (Retry(total=1, connect=None, read=None)) after connection broken by 'ReadTimeoutError("HTTPSConnectionPool(host='www.comet.com', port=443): Read timed out. (read timeout=9)")': /batch""",
        """Backing off send(...) for 0.4s (requests.exceptions.ConnectionError: HTTPSConnectionPool(host='m.example', port=443): Max retries exceeded with url: /m)""",
        """WARNING Retrying job.upload in 2.0 seconds as it raised ConnectionError: HTTPSConnectionPool(host='m.example', port=443): Read timed out.""",
        """'(ReadTimeoutError("HTTPSConnectionPool(host='huggingface.co', port=443): Read timed out."), '(Request ID: 7)')' thrown while requesting HEAD https://huggingface.co/gpt2/resolve/main/config.json""",
    ],
    ids=["urllib3", "backoff", "tenacity", "hub"],
)  # fmt: skip
def test_a_request_that_is_made_again_ends_nothing(engine: Engine, line: str) -> None:
    assert triage(engine, losses(0, 4), line).outcome == "healthy"


@pytest.mark.parametrize(
    "refused",
    [
        "sbatch: error: Batch job submission failed: Requested node configuration is not available",
        "srun: error: Application launch failed: Communication connection failure",
        "slurmstepd: error: pyxis: failed to import docker image",
    ],
)
def test_a_refused_start_is_no_failure_when_many_steps_follow(
    engine: Engine, refused: str, decided: Callable[[], set[str]]
) -> None:
    assert triage(engine, refused, steps(range(1), count=200)).outcome == "healthy"
    root = triage(engine, steps(range(1), count=200), refused).root_cause
    assert root is not None
    assert {"started-after-all"} <= decided()


def bars(first: int, count: int, step: int) -> list[str]:
    return [
        f"Epoch 1:  45%|####5     | {step}/100 [00:{first + at:02}<00:50,  1.1it/s, loss=0.5]" for at in range(count)
    ]


def test_a_bar_that_is_drawn_again_at_the_same_step_is_not_progress(engine: Engine) -> None:
    logged = ["ERROR:trainer:step failed", *traceback("KeyError: 'widget'", INNER)]
    assert entry(triage(engine, bars(0, 1, 44), logged, bars(1, 9, 45))) is not None
    onward = [line for step in range(46, 60) for line in bars(step - 40, 1, step)]
    assert triage(engine, bars(0, 1, 44), logged, onward).outcome == "healthy"
    assert triage(engine, bars(0, 9, 45)).outcome == "inconclusive"


def test_an_exception_that_is_met_by_a_retry_is_not_a_cause_of_what_failed_later(engine: Engine) -> None:
    tried = [f"OSError: [Errno 5] Input/output error: '/d/a.bin' (try {number}), retrying in 5 s" for number in (1, 2)]
    assert entry(triage(engine, tried, losses(0, 3), MISSING)) == "usage.python-error"
    assert triage(engine, tried, losses(0, 9)).outcome == "healthy"
    assert entry(triage(engine, tried, "OSError: [Errno 5] Input/output error: '/d/a.bin'")) == "storage.io-error"


@pytest.mark.parametrize("again", [BANNER, ["| distributed init (rank 0): env://"]], ids=["banner", "no banner"])
def test_a_launch_after_the_launchers_report_is_another_run(
    engine: Engine, again: list[str], decided: Callable[[], set[str]]
) -> None:
    first = [*traceback("KeyError: 'labels'", FRAMES, "[rank0]: "), *agent(1, 0), *report((0, 1))]
    assert triage(engine, first, again, losses(0, 9), "Training finished").outcome == "healthy"
    assert triage(engine, first, "Training finished").outcome != "healthy"
    assert {"process-ended-badly"} <= decided()


def test_a_start_under_nohup_ends_the_run_whose_traceback_is_right_above(engine: Engine) -> None:
    verdict = triage(engine, "nohup: ignoring input", MISSING, "nohup: ignoring input", losses(0, 9))
    assert verdict.outcome == "healthy"
    assert [run.entry for run in verdict.earlier_runs] == ["usage.python-error"]


@pytest.mark.parametrize("end", ["Training completed.", "{'train_runtime': 300.1, 'train_loss': 0.0, 'epoch': 3.0}"])
def test_a_nan_loss_in_the_last_steps_is_a_failure_although_the_run_ended_well(
    engine: Engine, end: str, decided: Callable[[], set[str]]
) -> None:
    spoilt = [f"step {step} loss nan lr 1e-4" for step in range(20, 60)]
    verdict = triage(engine, losses(0, 20), spoilt, end)
    assert entry(verdict) == "numerics.nan-loss"
    assert verdict.root_cause is not None
    assert "trained-in-vain" in {rule for reason in verdict.root_cause.because for rule in reason.values.values()}
    assert {"last-steps-show-it"} <= decided()


def test_a_loss_that_was_nan_once_is_survived(engine: Engine) -> None:
    verdict = triage(engine, losses(0, 20), ["step 20 loss nan lr 1e-4"] * 2, losses(21, 20), "Training completed.")
    assert verdict.outcome == "healthy"
