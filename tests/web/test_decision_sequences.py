"""Jobs from their first attempt to their end, over HTTP with logs that the engine reads: what the page's score says.

What goes wrong in each job is known, so that it is known too whether another attempt would have gone on.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.prepared import DATABASE, put_database
from torchtriage.settings import Settings
from torchtriage.web.app import create_app

HOSTS = tuple(f"gpu-{number:03}" for number in range(8))
_MAX_COUNT = 30  # attempts, more than the policy allows without progress
Attempt = Callable[
    [int, frozenset[str]], list[str] | None
]  # the failure's lines of an attempt; None where it ends well


def raised(error: str, where: str = "train.py", rank: int = 3) -> list[str]:
    return [
        f"[rank{rank}]: Traceback (most recent call last):",
        f'[rank{rank}]:   File "/work/{where}", line 81, in step',
        f"[rank{rank}]:     loss = model(batch)",
        f"[rank{rank}]: {error}",
    ]


def oom(chance: random.Random) -> Attempt:
    size = chance.randint(1, 40)
    return lambda attempt, out: raised(
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {size}.00 GiB. GPU 0 has a total capacity of 79.15 GiB "
        "of which 1.10 GiB is free."
    )


def bug(chance: random.Random) -> Attempt:
    name = chance.choice(("labels", "pixel_values", "mask"))
    return lambda attempt, out: raised(f"KeyError: '{name}'")


def lost_peer(chance: random.Random) -> Attempt:
    """A network that fails now and then."""
    times = chance.randint(1, 2)
    error = "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, remote process exited or there was a network error, NCCL version 2.21.5"
    return lambda attempt, out: raised(error, rank=attempt) if attempt < times else None


def broken_host(chance: random.Random) -> Attempt:
    bad = chance.choice(HOSTS)
    error = "RuntimeError: CUDA error: uncorrectable ECC error encountered"
    return lambda attempt, out: None if bad in out else [f"{bad}: {line}" for line in raised(error)]


def preempted(chance: random.Random) -> Attempt:
    times = chance.randint(1, 4)
    line = "slurmstepd: error: *** STEP 4711.0 ON gpu-001 CANCELLED AT 2026-05-01T09:05:11 DUE TO PREEMPTION ***"
    return lambda attempt, out: [line] if attempt < times else None


def unknown(chance: random.Random) -> Attempt:
    """What no entry names, and what passes for some jobs only."""
    times = chance.choice((1, 1, _MAX_COUNT))
    return lambda attempt, out: raised("widgets.WidgetError: jammed") if attempt < times else None


KINDS = {"oom": oom, "bug": bug, "peer": lost_peer, "host": broken_host, "preempted": preempted, "unknown": unknown}


def log(failure: list[str], step: int) -> str:
    lines = [f"{HOSTS[0]}: step {at} loss {2.5 - at / 10000:.4f}" for at in range(max(0, step - 5), step + 1)]
    return "\n".join([*lines, *failure, ""])


def play(client: TestClient, seed: int, actions: Counter[tuple[str, str]]) -> int:
    """Plays a job as it is decided; once it stops or waits, one more attempt shows what came of it -> its attempts."""
    chance = random.Random(seed)
    kind = list(KINDS)[seed % len(KINDS)]
    failing, out, job = KINDS[kind](chance), frozenset[str](), f"{kind}-{seed}"
    step, moves = chance.randint(10, 900), kind not in ("oom", "bug", "unknown")
    for attempt in range(_MAX_COUNT):
        failure = failing(attempt, out)
        if failure is None:
            answer = client.post("/api/v1/run-summaries", json={"job_name": kind, "job_id": job})
            assert answer.status_code == 200
            return attempt + 1
        body = log(failure, step + attempt * 100 * moves)
        made = client.post("/api/v1/decision", params={"job_id": job, "attempt": attempt}, content=body).json()
        actions[kind, made["action"]] += 1
        if made["action"] == "stop":
            assert made["confidence"] == "certain"
        if made["action"] in ("stop", "wait"):
            following = failing(attempt + 1, out)
            query: dict[str, str | int] = {"job_id": job, "attempt": attempt + 1, "wait": 60}
            if following is None:
                client.post("/api/v1/run-summaries", json={"job_name": kind, "job_id": job})
            else:
                client.post(
                    "/api/v1/incidents", params=query, content=log(following, step + (attempt + 1) * 100 * moves)
                )
            return attempt + 2
        out |= frozenset(made["hosts"])
    raise AssertionError(f"{job}: restarted for ever")


@pytest.mark.parametrize("jobs", [12, pytest.param(300, marks=pytest.mark.slow)])
def test_no_job_is_stopped_that_would_have_gone_on(tmp_path: Path, migrated_sqlite: Path, jobs: int) -> None:
    put_database(migrated_sqlite, tmp_path / DATABASE)
    actions: Counter[tuple[str, str]] = Counter()
    with TestClient(create_app(Settings(data_dir=tmp_path, workers=0))) as client:
        attempts = sum(play(client, seed, actions) for seed in range(jobs))
        score = {one["action"]: one for one in client.get("/api/v1/decisions/score").json()["items"]}
    assert attempts >= 500 * (jobs >= 300)
    told = {
        action: {name: one[name] for name in ("right", "wrong", "unknown", "waiting")} for action, one in score.items()
    }
    assert told["stop"]["wrong"] == 0, told
    assert told["stop"]["right"] == actions["oom", "stop"] + actions["bug", "stop"] >= jobs / 6
    assert {kind for kind, action in actions if action == "stop"} <= {"oom", "bug"}
    assert actions["host", "restart-excluding"] >= jobs // 6
    assert told["restart-excluding"]["right"] > 20 * told["restart-excluding"]["wrong"]
    assert sum(one["waiting"] for one in told.values()) == 0
    restarts = [one for action, one in told.items() if action.startswith("restart")]
    assert sum(one["right"] for one in restarts) > 2 * sum(one["wrong"] for one in restarts)
    print(f"{jobs} jobs, {attempts} attempts: {told}")  # noqa: T201 - the figures of docs/decisions-api.md
