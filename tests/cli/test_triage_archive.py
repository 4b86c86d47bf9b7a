"""`torchtriage triage-archive` as its users run it: in processes that can be killed, and on a Dask cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.services.logs import OUT_OF_MEMORY
from torchtriage.cli.main import main

LOGS = 400
START = 120  # seconds that a busy machine may take until the first shard is there


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(LOGS):
        (folder / f"{number:04}.log").write_bytes(b"step %d\n" % number + OUT_OF_MEMORY)
    return folder


def command(logs: Path, out: Path, *more: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "torchtriage.cli.main",
        "triage-archive",
        str(logs),
        "--out",
        str(out),
        "--shard",
        "2",
        *more,
    ]


def keys(out: Path) -> list[str]:
    return sorted(json.loads(line)["key"] for path in out.glob("*.jsonl") for line in path.read_text().splitlines())


def family(pid: int) -> set[int]:
    """Returns a process and all that it started."""
    children = {int(path.parent.name) for path in Path("/proc").glob("[0-9]*/stat") if _parent(path) == pid}
    return {pid}.union(*(family(child) for child in children))


def _parent(stat: Path) -> int | None:
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


@pytest.mark.slow
def test_killed_in_the_middle_and_run_again_nothing_is_lost_or_double(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    running = subprocess.Popen(command(logs, out, "--jobs", "2"), stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + START
    while len(list(out.glob("*.jsonl"))) < 3:
        assert running.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
    started = family(running.pid)
    running.send_signal(signal.SIGKILL)
    running.wait()
    while any(_parent(Path(f"/proc/{pid}/stat")) for pid in started - {running.pid}):  # they notice, and end too
        assert time.monotonic() < deadline
        time.sleep(0.01)
    before = keys(out)
    assert 6 <= len(before) < LOGS
    again = subprocess.run(command(logs, out, "--jobs", "2"), capture_output=True, text=True, check=True)
    assert keys(out) == [f"{number:04}.log" for number in range(LOGS)]
    assert f"{len(before)} were done before" in again.stdout
    assert f"{LOGS - len(before)} × cuda.oom" in again.stdout
    assert not list(out.glob("*.part"))


@pytest.mark.slow
def test_it_works_on_a_dask_cluster(logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    distributed = pytest.importorskip("distributed", reason="dask is not installed (the extra torchtriage[dask])")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    with cluster:
        out = tmp_path / "out"
        arguments = [
            "triage-archive",
            str(logs),
            "--out",
            str(out),
            "--shard",
            "50",
            "--dask",
            cluster.scheduler_address,
        ]
        assert main(arguments) == 0
        assert keys(out) == [f"{number:04}.log" for number in range(LOGS)]
        assert main(arguments) == 0
    told = capsys.readouterr().out
    assert f"{LOGS} × cuda.oom" in told
    assert f"0 logs triaged in 0 shards; {LOGS} were done before" in told


def test_wrong_usage_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["triage-archive", str(tmp_path / "none"), "--out", str(tmp_path / "out")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"torchtriage: {tmp_path / 'none'}: no such folder"


def test_the_environment_says_what_a_log_may_be(logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIAGE_MAX_LOG_BYTES", "10")
    assert (
        main(["triage-archive", str(logs), "--out", str(tmp_path / "out"), "--match", "000?.log", "--jobs", "1"]) == 0
    )
    lines = [json.loads(line) for path in (tmp_path / "out").glob("*.jsonl") for line in path.read_text().splitlines()]
    assert {line["error"]["code"] for line in lines} == {"log_too_large"}
    assert len(lines) == 10
    assert os.listdir(tmp_path / "out") != []
