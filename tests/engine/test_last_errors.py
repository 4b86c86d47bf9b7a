"""Errors at the end of a run that no entry knows, and those in good runs that look alike."""

import json
from collections.abc import Callable

import pytest

from tests.logs import BANNER, agent, text
from torchtriage.domain.verdict import Verdict
from torchtriage.engine import Engine
from torchtriage.reading.sources import from_bytes

STEPS = [f"step {step} loss {3 / (step + 1):.4f}" for step in range(30)]
TOLD = "scene graph 12 is not closed under reflection"


def triage(engine: Engine, *parts: str | list[str]) -> Verdict:
    return engine.triage(from_bytes(text(*parts)))


@pytest.mark.parametrize(
    "last",
    [
        f"ERROR: {TOLD}",
        f"CRITICAL:sky.engine:{TOLD}",
        f"2026-03-12 10:14:12,131 - sky.trainer - ERROR - {TOLD}",
        f"2026-03-12 12:31:12 | ERROR | sky.guard:check:88 - {TOLD}",
        f"E0312 10:14:12.131000 4121 guard.cc:88] {TOLD}",
        f"fatal: {TOLD}",
        f'{{"time": "2026-03-12T10:14:12", "level": "ERROR", "msg": "{TOLD}"}}',
    ],
)
@pytest.mark.parametrize("count", [30, 1500])
def test_an_unknown_error_in_the_last_line_is_unexplained(
    engine: Engine, last: str, count: int, decided: Callable[[], set[str]]
) -> None:
    verdict = triage(engine, [f"step {step} loss 0.5" for step in range(count)], last)
    assert verdict.outcome == "unexplained"
    assert verdict.root_cause is not None
    assert [line.text for line in verdict.root_cause.evidence] == [last]
    assert {"trailing errors"} <= decided()


@pytest.mark.parametrize(
    "behind",
    [
        ["srun: error: gpu-07: task 0: Exited with exit code 1"],
        ["stopping loaders", "bye", "srun: error: gpu-07: task 0: Exited with exit code 1"],
        ["srun: error: gpu-07: task 0: Exited with exit code 1", "srun: Terminating StepId=311.0",
         "slurmstepd: error: *** STEP 311.0 ON gpu-07 CANCELLED AT 2026-03-12T10:11:12 ***"],
    ],
    ids=["exit", "goodbyes", "step"],
)  # fmt: skip
def test_a_launcher_that_shows_only_of_the_end_gives_way(engine: Engine, behind: list[str]) -> None:
    root = triage(engine, STEPS, f"ERROR {TOLD}", behind).root_cause
    assert root is not None
    assert root.entry is None
    assert TOLD in root.evidence[0].text


def test_the_rank_that_said_it_is_reported(engine: Engine) -> None:
    verdict = triage(engine, BANNER, STEPS, f"[rank1]: FATAL: {TOLD}", agent(1, local_rank=1))
    assert verdict.outcome == "unexplained"
    assert verdict.root_cause is not None
    assert verdict.root_cause.rank == 1


@pytest.mark.parametrize(
    "log",
    [
        [*STEPS, f"ERROR: {TOLD}", *STEPS],
        [*STEPS, "Training completed in 31 s", "wandb: ERROR Failed to sync: run abc12"],
        [*STEPS, "wandb: ERROR Error while calling W&B API: context deadline exceeded (<Response [504]>)"],
        [*STEPS, "Saved checkpoint. ERRORS: 0, FAILED: 0", "Errors: 0"],
        [*STEPS, "ERROR:fetcher:shard 31 failed to download, retry 1 of 5", "INFO:fetcher:shard 31 ok", "final: 0.3"],
        [f"ERROR: {TOLD}", *STEPS],
        ["[health] ERROR count=0 WARN count=3", *STEPS, "[health] ERROR count=0 WARN count=3"],
    ],
    ids=["went on", "closing words", "tracker", "counters", "retried", "early", "health"],
)
def test_a_good_run_with_errors_in_it_is_healthy(engine: Engine, log: list[str]) -> None:
    assert triage(engine, log).outcome == "healthy"


def test_a_named_cause_comes_before_last_words(engine: Engine) -> None:
    line = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    root = triage(engine, STEPS, line, f"ERROR: {TOLD}").root_cause
    assert root is not None
    assert root.entry == "cuda.oom"


def test_a_severity_that_only_names_the_stream_makes_no_line_an_error(engine: Engine) -> None:
    """GKE gives all that a container writes to stderr the severity ERROR."""
    said = [*(f"step {step} loss 0.5" for step in range(8)), "closing the logger", "*" * 40]
    lines = [json.dumps({"textPayload": line, "severity": "ERROR", "timestamp": f"2026-05-01T09:00:{at:02}Z"}) for at, line in enumerate(said)]  # fmt: skip
    assert triage(engine, *lines).outcome == "healthy"
    lines[-1] = lines[-1].replace("*" * 40, "ERROR: the widget is upside down")
    assert triage(engine, *lines).outcome == "unexplained"
