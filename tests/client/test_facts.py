"""What the client finds out of its environment, and that it runs on old Pythons."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import torchtriage
from tests.client.running import CLIENT
from torchtriage.client import torchtriage_client as client

SLURM = {
    "SLURM_JOB_ID": "9", "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "2", "SLURM_JOB_NAME": "gpt", "SLURM_CLUSTER_NAME": "blue",
    "SLURM_JOB_USER": "ann", "SLURM_JOB_PARTITION": "h100", "SLURM_NODEID": "3", "SLURM_GPUS_ON_NODE": "8", "SLURM_JOB_ACCOUNT": "nlp",
}  # fmt: skip
POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "POD_NAMESPACE": "ml"}
RAY = {"RAY_JOB_CONFIG_JSON_ENV_VAR": json.dumps({"metadata": {"job_submission_id": "raysubmit_1", "job_name": "gpt"}})}
SKY = {"SKYPILOT_TASK_ID": "sky-1_gpt", "SKYPILOT_NODE_RANK": "1", "SKYPILOT_NUM_GPUS_PER_NODE": "4",
       "SKYPILOT_CLUSTER_INFO": '{"cluster_name": "blue", "cloud": "AWS"}'}  # fmt: skip


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (SLURM, {"scheduler": "slurm", "job_id": "7_2", "job_name": "gpt", "cluster": "blue", "user": "ann", "queue": "h100",
                 "node_rank": "3", "gpus": "8", "attempt": "0"}),
        ({**SLURM, "SLURM_RESTART_COUNT": "2", "TORCHTRIAGE_CLUSTER": "red"}, {"attempt": "2", "cluster": "red"}),
        ({**POD, "POD_NAME": "gpt-worker-3", "RANK": "4"}, {"job_name": "gpt", "job_id": "ml/gpt", "node_rank": "4"}),
        ({**POD, "POD_NAME": "gpt-2-x7k2p", "JOB_COMPLETION_INDEX": "2"}, {"job_name": "gpt", "node_rank": "2"}),
        ({**POD, "POD_NAME": "gpt-node-0-3-x7k2p", "PET_NODE_RANK": "3"}, {"job_name": "gpt", "node_rank": "3"}),
        ({**POD, "POD_NAME": "gpt-trainer-1", "VK_TASK_INDEX": "1"}, {"job_name": "gpt", "node_rank": "1"}),
        ({**POD, "JOBSET_NAME": "gpt", "JOBSET_RESTART_ATTEMPT": "1"}, {"job_id": "ml/gpt", "attempt": "1"}),
        (RAY, {"scheduler": "ray", "job_id": "raysubmit_1", "job_name": "gpt"}),
        (SKY, {"scheduler": "skypilot", "job_id": "sky-1_gpt", "node_rank": "1", "gpus": "4", "cluster": "blue"}),
        ({"PBS_JOBID": "5.head"}, {"scheduler": "pbs", "job_id": "5.head"}),
        ({"PET_NODE_RANK": "auto", "CUDA_VISIBLE_DEVICES": "0,1"}, {"gpus": "2"}),
        ({"TORCHTRIAGE_JOB_ID": "a\x07b\n" * 200, "TORCHTRIAGE_ATTEMPT": "first"}, {"job_id": ("a b " * 125)}),
    ],
)  # fmt: skip
def test_facts_of_schedulers(
    environment: dict[str, str], expected: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("USER", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    for name, text in environment.items():
        monkeypatch.setenv(name, text)
    parser = client._parser()
    query = dict(client.query_of(client.settings_of(parser.parse_args(["flush"]), 20), *client.facts_here()))
    assert expected.items() <= query.items()
    assert "attempt" in expected or query.get("attempt") in (None, "0")


def test_every_fact_is_one_that_the_service_takes() -> None:
    from torchtriage.web.api.request_models import SubmitQuery

    assert set(client._FIELDS) == set(SubmitQuery.model_fields) - {"label", "wait", "provisional"}


def test_it_is_of_this_version() -> None:
    assert client.__version__ == torchtriage.__version__


def test_it_imports_the_standard_library_only() -> None:
    tree = ast.parse(CLIENT.read_text(), feature_version=(3, 8))
    modules = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    modules |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {module.partition(".")[0] for module in modules} <= sys.stdlib_module_names


def _runs(python: str) -> bool:
    return bool(shutil.which(python)) and subprocess.run([python, "--version"], capture_output=True).returncode == 0


def test_it_runs_on_python_3_8(tmp_path: Path) -> None:
    found = [*map(str, Path.home().glob(".pyenv/versions/3.8.*/bin/python")), "python3.8"]
    python = next((each for each in found if _runs(each)), None)
    if python is None:
        pytest.skip("no Python 3.8 here")
    script = "import sys; print(sys.stdin.read()); sys.exit(3)"
    environment = {
        "TORCHTRIAGE_URL": "http://127.0.0.1:9",
        "TORCHTRIAGE_SPOOL": str(tmp_path / "spool"),
        "TORCHTRIAGE_SCRATCH": str(tmp_path),
    }
    done = subprocess.run(
        [python, CLIENT, "run", "--", python, "-c", script],
        env=environment, input="in", capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (3, "in\n")
    assert re.fullmatch(
        r"torchtriage-client: .* can't be reached: .*Connection refused; the report waits in .*\n", done.stderr
    )


def test_every_option_is_in_the_docs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        client.main(["run", "--help"])
    shown = capsys.readouterr().out
    page = (Path(__file__).resolve().parents[2] / "docs" / "client.md").read_text()
    for option in re.findall(r"--[a-z][a-z-]+", shown):
        assert option in page or option[2:].replace("-", "_") in client._FIELDS, option


def test_what_ranks_write_gives_the_disk_back(tmp_path: Path) -> None:
    path = tmp_path / "stdout.log"
    path.write_bytes(b"head\n" * 20_000 + b"middle\n" * 1_000_000 + b"the end\n")
    before = path.read_bytes()
    client.punch(str(tmp_path), head=65536, tail=65536)
    if path.stat().st_blocks * 512 >= len(before):
        pytest.skip("this file system punches no holes")
    after = path.read_bytes()
    assert (len(after), after[:65536], after[-65536:]) == (len(before), before[:65536], before[-65536:])
    assert path.stat().st_blocks * 512 < 300_000
