"""A real torchrun under the client; $TORCHRUN names one that is not on the PATH of this Python."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.client.running import NOBODY, Bench

TRAIN = """
import os, sys
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
for step in range(3):
    print(f"step {step} loss 2.5", flush=True)
if rank == 1:
    if sys.argv[1] == "kill":
        os.kill(os.getpid(), 9)
    None.shape
dist.barrier()
"""


@pytest.fixture
def torchrun(bench: Bench) -> list[str]:
    program = os.environ.get("TORCHRUN") or shutil.which("torchrun", path=Path(sys.executable).parent)
    if program is None:
        pytest.skip("no torchrun here (torch is not installed, and $TORCHRUN names none)")
    (bench.folder / "train.py").write_text(TRAIN)
    return ["run", "--", program, "--standalone", "--nproc-per-node", "2", "train.py"]


def test_the_rank_that_raised_is_named(bench: Bench, torchrun: list[str]) -> None:
    status, output, errors = bench.run(*torchrun, "raise")
    assert status == 1
    assert "[default1]:step 2 loss 2.5" in output
    assert "likely (usage.python-error)" in errors
    verdict = bench.incidents()[0]["verdict"]
    assert verdict["root_cause"]["rank"] == 1
    assert "AttributeError" in verdict["root_cause"]["evidence"][0]["text"]


def test_the_rank_that_was_killed_is_named_when_the_service_is_back(bench: Bench, torchrun: list[str]) -> None:
    status, _, errors = bench.run(*torchrun, "kill", environment={"TORCHTRIAGE_URL": NOBODY})
    assert (status, "the report waits in" in errors) == (1, True)
    assert bench.run("flush", "--wait", "30")[1] == "delivered 1, waiting 0\n"
    incident = bench.triaged()
    assert (incident["verdict"]["root_cause"]["entry"], incident["verdict"]["root_cause"]["rank"]) == (
        "process.oom-killed",
        1,
    )
