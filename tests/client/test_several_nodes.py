"""A client on each node of a run, with a real service: what their reports become."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.client.running import NOBODY, OUT_OF_MEMORY, Bench
from torchtriage.client import torchtriage_client as client

PEER = """
import sys
sys.stderr.write('''step 1 loss 2.5
[rank0]: Traceback (most recent call last):
[rank0]:   File "/job/train.py", line 11, in <module>
[rank0]:     dist.all_reduce(loss)
[rank0]: RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.4.8]:41177
''')
sys.exit(1)
"""


def node(bench: Bench, rank: int, script: str, **environment: str) -> str:
    """Returns what the client of one of two nodes of a Slurm step says."""
    told = {
        "SLURM_JOB_ID": bench.user,
        "SLURM_NODEID": str(rank),
        "SLURM_STEP_NUM_NODES": "2",
        "SLURM_JOB_NUM_NODES": "4",
    }
    told |= {"TORCHTRIAGE_SPOOL": str(bench.folder / f"spool{rank}"), "TORCHTRIAGE_WAIT": "2"}
    told["TORCHTRIAGE_SCRATCH"] = str(bench.folder / f"scratch{rank}")
    return bench.script(script, environment=told | environment)[2]


def test_nodes_that_fail_together_all_show_the_cause(bench: Bench) -> None:
    with ThreadPoolExecutor() as pool:
        waits = {"TORCHTRIAGE_WAIT": "50", "TORCHTRIAGE_TIMEOUT": "120"}
        said = list(pool.map(lambda rank: node(bench, rank, (PEER, OUT_OF_MEMORY)[rank], **waits), range(2)))
    assert all("(cuda.oom)" in one and "nodes: 2 of 2 have reported" in one for one in said), said
    (incident,) = bench.incidents()
    assert incident["job"]["nodes"] == 2
    assert sorted(incident["job"]["reports"]) == ["0", "1"]


@pytest.mark.slow
@pytest.mark.parametrize("late", [0, 1])
def test_a_node_that_reports_late_joins(bench: Bench, late: int) -> None:
    scripts = PEER, OUT_OF_MEMORY
    node(bench, late, scripts[late], TORCHTRIAGE_URL=NOBODY)
    node(bench, 1 - late, scripts[1 - late])
    assert "reports" not in bench.triaged()["job"]
    assert bench.run("flush", "--spool", str(bench.folder / f"spool{late}"))[1] == "delivered 1, waiting 0\n"
    (incident,) = bench.incidents()
    assert len(incident["job"]["reports"]) == 2
    assert bench.triaged()["verdict"]["root_cause"]["entry"] == "cuda.oom"


@pytest.mark.parametrize(
    ("job", "line"),
    [
        ({}, ""),
        ({"nodes": 1}, ""),
        ({"nodes": 2}, "  nodes: 1 of 2 have reported; the reports of the others will be added"),
        ({"nodes": 2, "reports": {"0": {}, "1": {}}}, "  nodes: 2 of 2 have reported"),
    ],
)
def test_the_verdict_says_how_many_nodes_it_rests_on(job: dict[str, Any], line: str) -> None:
    lines = client.summary_lines({"verdict": {"outcome": "unexplained"}, "job": job})
    assert [one for one in lines if "nodes:" in one] == ([line] if line else [])


@pytest.mark.parametrize(
    ("command", "facts"),
    [
        (["torchrun", "--nnodes=2", "--node_rank", "1", "--rdzv-id=77"], {"nodes": "2", "node_rank": "1", "job_id": "77"}),
        (["torchrun", "--nnodes", "1:4", "--rdzv_id", "77", "train.py"], {"nodes": "4", "job_id": "77"}),
        (["accelerate", "launch", "--num_machines", "2", "--machine_rank=0"], {"nodes": "2", "node_rank": "0"}),
        (["torchrun", "--standalone", "--rdzv-id", "77", "train.py"], {"nodes": "1"}),
        (["torchrun", "--nnodes", "1", "--node-rank", "0"], {"nodes": "1"}),
        (["torchrun", "--nnodes", "$N"], {}),
    ],
)  # fmt: skip
def test_options_of_a_launcher_tell_the_node(command: list[str], facts: dict[str, str]) -> None:
    assert client._facts_of_command(command) == facts


def test_a_launcher_of_all_nodes_reports_once(bench: Bench) -> None:
    (bench.folder / "srun").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (bench.folder / "srun").chmod(0o755)
    told = {"SLURM_JOB_ID": bench.user, "SLURM_NODEID": "0", "SLURM_JOB_NUM_NODES": "2"}
    said = bench.run("run", "--", str(bench.folder / "srun"), "-c", OUT_OF_MEMORY, environment=told)[2]
    assert "(cuda.oom)" in said
    assert "nodes:" not in said
