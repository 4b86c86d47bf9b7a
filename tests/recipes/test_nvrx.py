"""deploy/nvrx: the batch script, with a launcher that does what NVIDIA's does after each failed cycle."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import serving
from tests.prepared import DATABASE, put_database
from tests.web.logs import OOM

RECIPE = Path(__file__).resolve().parents[2] / "deploy" / "nvrx" / "train.sbatch"
_LAUNCHER = """#!{python}
import argparse, json, urllib.parse, urllib.request
parser = argparse.ArgumentParser()
for name in ("nnodes", "nproc-per-node", "rdzv-backend", "rdzv-id", "rdzv-endpoint", "max-restarts"):
    parser.add_argument("--" + name, required=True)
parser.add_argument("--ft-per-cycle-applog-prefix", required=True)
parser.add_argument("--ft-attribution-endpoint", required=True)
parser.add_argument("script", nargs=argparse.REMAINDER)
options = parser.parse_args()

def ask(path, data=None):
    request = urllib.request.Request(options.ft_attribution_endpoint + path, data, {{"content-type": "application/json"}})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)

for cycle in range(int(options.max_restarts) + 1):
    log = options.ft_per_cycle_applog_prefix.replace(".log", "_cycle%d.log" % cycle)
    with open(log, "w") as file:
        file.write({output!r})
    ask("/logs", json.dumps({{"log_path": log}}).encode())
    told = ask("/logs?" + urllib.parse.urlencode({{"log_path": log, "wait": "true"}}))["recommendation"]
    print(options.rdzv_endpoint, options.nnodes, cycle, told["action"], *options.script)
    if told["action"] == "STOP":
        break
"""


def put_program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


def run(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    put_program(folder / "bin", "srun", '#!/bin/sh\nexec "$@"\n')
    put_program(folder / "bin", "scontrol", "#!/bin/sh\nprintf 'gpu-001\\ngpu-002\\n'\n")
    put_program(folder / "bin", "ft_launcher", _LAUNCHER.format(python=sys.executable, output=OOM))
    slurm = {"SLURM_JOB_ID": "4711", "SLURM_NNODES": "2", "SLURM_JOB_NODELIST": "gpu-[001-002]"}
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", str(RECIPE)], env=slurm | environment | {"PATH": path}, capture_output=True, text=True, timeout=120
    )


def test_the_launcher_stops_where_that_is_decided(tmp_path: Path, migrated_sqlite: Path) -> None:
    logs = tmp_path / "lustre"
    logs.mkdir()
    put_database(migrated_sqlite, tmp_path / "data" / DATABASE)
    with serving(tmp_path / "data", workers=0, attribution_root=logs, decisions="enforce") as server:
        done = run(tmp_path, TORCHTRIAGE_URL=server.url, LOGS=str(logs))
    assert (done.stdout, done.stderr, done.returncode) == ("gpu-001:29500 2 0 STOP train.py\n", "", 0)
    assert [path.name for path in logs.iterdir()] == ["job_4711_cycle0.log"]


@pytest.mark.parametrize("name", ["TORCHTRIAGE_URL", "LOGS"])
def test_a_missing_setting_is_named(tmp_path: Path, name: str) -> None:
    done = run(tmp_path, **({"TORCHTRIAGE_URL": "http://triage", "LOGS": "/lustre/logs"} | {name: ""}))
    assert done.returncode != 0
    assert f"{name}: is not set; " in done.stderr
