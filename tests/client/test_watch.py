"""`watch`: what it says and reports of real commands that stop, and what it leaves alone."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.client.running import NOBODY, Bench, ended
from tests.full_disk import fill, tmpfs
from tests.http_server import Asked, Told, serving
from torchtriage.client import torchtriage_client as client

SHORT = ("--silence", "1", "--patience", "2")
# Prints steps, waits in a function for a line on standard input, and goes on as that says.
STOPS = """
import sys, time
print("step 1 loss 2.5\\nstep 2 loss 2.4", flush=True)
def waits_for_the_others():
    return sys.stdin.readline()
said = waits_for_the_others()
print("step 3 loss 2.3\\ntraining finished", flush=True)
sys.exit(int(said or 0))
"""
RANK = {"RANK": "3"}
GATHER = {"TORCHTRIAGE_GATHER": "yes"}
HOST = socket.gethostname().split(".")[0]


def watched(bench: Bench, *options: str, environment: dict[str, str] | None = None, **more: Any) -> Any:
    command = ("watch", *SHORT, *options, "--", sys.executable, "-c", STOPS)
    return ended(bench.start(*command, environment=environment, **more))


def until(process: subprocess.Popen[bytes], words: str) -> list[str]:
    """Returns the lines of standard error up to the one with these words."""
    assert process.stderr is not None
    lines = []
    for line in iter(process.stderr.readline, b""):
        lines.append(line.decode())
        if words in lines[-1]:
            return lines
    raise AssertionError("".join(lines))


def test_a_hang_is_reported_at_once_and_replaced_at_the_end(bench: Bench) -> None:
    with watched(bench, environment=RANK) as process:
        lines = until(process, "more:")
        assert lines[0] == "torchtriage-client: no output for 2 s (limit 2 s); last step 2\n"
        assert any("The run printed nothing for 2 s" in line for line in lines)
        assert any("state: provisional, because the job is still running" in line for line in lines)
        first = bench.triaged()
        assert (first["verdict"]["provisional"], first["verdict"]["root_cause"]["entry"]) == (True, "perf.hang")
        assert "waits_for_the_others" in bench.log("stacks/rank_3.txt")
        assert bench.log("stdout.log") == "step 1 loss 2.5\nstep 2 loss 2.4\n"
        process.communicate(b"7\n")
        assert process.returncode == 7
    (last,) = bench.incidents()
    assert (last["id"], last["job"]["exit_code"], last["job"]["provisional"]) == (first["id"], 7, False)
    assert bench.triaged()["verdict"]["provisional"] is False
    assert not [file for file in last["log"]["files"] if "stacks" in file["name"]]  # the run had gone on
    assert not bench.captures() + bench.bundles()


def test_a_lost_answer_to_a_report_of_a_hang_makes_no_second_incident(bench: Bench) -> None:
    lost: list[str] = []

    def pass_on(asked: Asked) -> Told:
        request = urllib.request.Request(bench.url + asked.path, asked.body or None, method=asked.method)
        with urllib.request.urlopen(request) as answer:
            body, status = answer.read(), answer.status
        if "provisional=true" in asked.path:
            lost.append(asked.path)
            return Told(b"bad gateway", 502)
        return Told(body, status)

    with serving(pass_on) as gateway, watched(bench, environment={"TORCHTRIAGE_URL": gateway}) as process:
        until(process, "the hang is not reported")
        process.communicate(b"7\n")
    (incident,) = bench.incidents()
    assert (len(lost), incident["job"]["exit_code"], incident["job"]["provisional"]) == (1, 7, False)


def test_a_run_that_went_on_and_ended_well_is_no_failure_any_more(bench: Bench) -> None:
    with watched(bench) as process:
        until(process, "more:")
        output, _ = process.communicate(b"0\n")
        assert (process.returncode, output.decode().splitlines()[-1]) == (0, "training finished")
    (incident,) = bench.incidents()
    assert bench.triaged()["verdict"]["outcome"] == "healthy"
    assert incident["job"]["exit_code"] == 0


def test_a_run_without_a_hang_is_not_reported(bench: Bench) -> None:
    with watched(bench) as process:
        _, errors = process.communicate(b"0\n")
        assert (process.returncode, errors) == (0, b"")
    assert not bench.incidents() + bench.captures()


@pytest.mark.slow
def test_a_command_that_hangs_is_ended_only_where_that_is_asked(bench: Bench) -> None:
    with watched(bench, "--stop-after", "1", environment=RANK) as process:
        assert any("told to end (--stop-after)" in line for line in until(process, "told to end"))
        assert process.wait(120) == -signal.SIGTERM
    incident = bench.triaged()
    assert incident["verdict"]["provisional"] is False
    assert "waits_for_the_others" in bench.log("stacks/rank_3.txt")  # it hung to the end


def test_no_service_costs_a_line(alone: Bench) -> None:
    with watched(alone) as process:
        lines = until(process, "the hang is not reported")
        assert NOBODY in lines[-1]
        assert not alone.bundles()  # the report at the end has more
        process.communicate(b"0\n")
        assert process.returncode == 0


@pytest.mark.slow
def test_a_client_that_is_killed_leaves_a_report_that_replaces_the_provisional_one(bench: Bench) -> None:
    with watched(bench, environment=RANK) as process:
        until(process, "more:")
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert bench.run("flush")[1] == "delivered 1, waiting 0\n"
    (incident,) = bench.incidents()
    assert incident["job"]["provisional"] is False
    assert "waits_for_the_others" in bench.log("stacks/rank_3.txt")


def program(folder: Path, name: str, text: str) -> dict[str, str]:
    """Returns an environment with a program of this name first on the PATH."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n" + text)
    (folder / name).chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.slow
def test_a_full_disk_costs_lines(bench: Bench) -> None:
    """All that the client can write to is full, but for /dev/shm."""
    with tmpfs(bench.folder / "full", 4) as full:
        places = {"TORCHTRIAGE_SPOOL": str(full / "spool"), "TORCHTRIAGE_SCRATCH": str(full / "scratch")}
        with watched(bench, environment=RANK | places) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"step 1 loss 2.5\n"
            fill(full)
            lines = until(process, "more:")
            assert any("evidence is not kept for the report at the end" in line for line in lines)
            incident = bench.triaged()
            assert incident["verdict"]["provisional"] is True
            process.communicate(b"0\n")
            assert process.returncode == 0


@pytest.mark.slow  # it waits the ten seconds
def test_an_nvidia_smi_that_hangs_is_given_up(bench: Bench) -> None:
    hangs = program(bench.folder / "bin", "nvidia-smi", "trap '' TERM; sleep 600")
    with watched(bench, environment=hangs | GATHER) as process:
        lines = until(process, "more:")
        assert "torchtriage-client: not gathered: nvidia-smi: no answer within 10 s\n" in lines
        process.communicate(b"0\n")
        assert process.returncode == 0


def test_what_programs_tell_is_sent(bench: Bench, tmp_path: Path) -> None:
    environment = program(bench.folder / "bin", "nvidia-smi", "echo 'Driver Version : 550.54'") | GATHER
    environment |= program(bench.folder / "bin", "dmesg", "exit 1") | program(
        bench.folder / "bin", "journalctl", "exit 1"
    )
    environment |= program(bench.folder / "bin", "py-spy", "echo \"Process $3: python\"; echo 'Python v3.11.7'")
    dump = tmp_path / "nccl_trace_rank_3"
    environment |= RANK | {"TORCH_NCCL_DEBUG_INFO_TEMP_FILE": str(tmp_path / "nccl_trace_rank_")}
    with watched(bench, environment=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"step 1 loss 2.5\n"  # what is older than the run is not of it
        dump.write_text('{"version": "2.4", "entries": [], "pg_config": {}, "pg_status": {}}')
        until(process, "more:")
        assert bench.log(f"nvidia-smi-q.{HOST}.txt") == "Driver Version : 550.54\n"
        assert bench.log("stacks/rank_3.txt").startswith("Process ")
        assert '"pg_config"' in bench.log("dumps/nccl_trace_rank_3")
        process.communicate(b"0\n")


def test_a_process_that_has_no_handler_gets_no_signal(bench: Bench) -> None:
    command = [sys.executable, "-S", "-c", STOPS]  # without `site` nothing is registered
    with ended(bench.start("watch", *SHORT, "--", *command, environment=RANK)) as process:
        lines = until(process, "more:")
        assert any("not gathered: the stack of rank 3" in line for line in lines)
        process.communicate(b"0\n")
        assert process.returncode == 0


WORKS = """import os, sys, time
for step in range(10):
    print("step", step, "loss 2.5", flush=True)
    time.sleep(0.4)
while not os.path.exists(sys.argv[1]):
    sum(range(1000))
    sorted(range(1000))
print("eval loss 2.3", flush=True)
"""


@pytest.mark.slow
def test_a_rank_that_works_without_a_word_is_no_hang(bench: Bench, tmp_path: Path) -> None:
    over = tmp_path / "over"
    command = [sys.executable, "-c", WORKS, str(over)]
    with ended(bench.start("watch", *SHORT, "--patience", "300", "--", *command, environment=RANK)) as process:
        lines = until(process, "torchtriage-client:")
        assert "but the stack of rank 3 changes: no hang before 300 s" in lines[-1]
        over.touch()
        _, told = process.communicate()
        assert (process.returncode, told) == (0, b"")
    assert bench.incidents() == []


@pytest.mark.slow
def test_a_job_ended_because_it_hung_says_so_at_its_end(bench: Bench) -> None:
    with watched(bench, "--stop-after", "1", environment=RANK) as process:
        until(process, "more:")
        lines = until(process, "more:")
        assert any("The watch ended it 1 s later, as --stop-after says." in line for line in lines)
        process.communicate()
    assert bench.triaged()["verdict"]["root_cause"]["entry"] == "perf.hang"


@pytest.mark.slow
def test_a_stopped_process_is_reported(bench: Bench) -> None:
    command = [sys.executable, "-c", "import os; os.kill(os.getpid(), 19)\n" + STOPS]
    with ended(bench.start("watch", *SHORT, "--", *command, environment=RANK)) as process:
        lines = until(process, "more:")
        assert "torchtriage-client: not gathered: the stack of rank 3: its process is stopped (SIGSTOP)\n" in lines
        assert any("The process of rank 3 is stopped (by SIGSTOP" in line for line in lines)
        assert bench.triaged()["verdict"]["run"]["suspect_ranks"] == [3]
        (stopped,) = (pid for pid in client.tree_of(process.pid) if b"STOP" in state_of(pid))
        os.kill(stopped, signal.SIGCONT)
        process.communicate(b"0\n")
        assert process.returncode == 0


def state_of(pid: int) -> bytes:
    lines = Path(f"/proc/{pid}/status").read_bytes().splitlines()
    return next(line.upper() for line in lines if line.startswith(b"State:"))


TAKES_IT_AWAY = "import signal; signal.signal(signal.SIGRTMAX - 2, signal.SIG_DFL)\n"
CLOSES_ITS_FILE = "import os; os.closerange(3, 256)\n"


@pytest.mark.slow
@pytest.mark.parametrize("first", [TAKES_IT_AWAY, CLOSES_ITS_FILE])
def test_a_process_whose_handler_cannot_answer_gets_no_signal(bench: Bench, first: str) -> None:
    command = [sys.executable, "-c", first + STOPS]
    with ended(bench.start("watch", *SHORT, "--", *command, environment=RANK)) as process:
        lines = until(process, "more:")
        assert any("not gathered: the stack of rank 3" in line for line in lines)
        process.communicate(b"0\n")
        assert process.returncode == 0


def test_the_hook_gives_way_to_a_module_of_the_same_name(bench: Bench) -> None:
    own = bench.folder / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import builtins\nbuiltins.OWN = 'mine'\n")
    script = "import sys, sitecustomize; print(OWN, sitecustomize.__file__, [p for p in sys.path if '/hook' in p])"
    command = ("watch", "--", sys.executable, "-c", script)
    for environment in ({"PYTHONPATH": str(own)}, {"PYTHONPATH": str(own)} | RANK):
        assert bench.run(*command, environment=environment) == (0, f"mine {own}/sitecustomize.py []\n", "")
    plain = ("watch", "--", sys.executable, "-c", "import sys; print([p for p in sys.path if '/hook' in p])")
    assert bench.run(*plain, environment=RANK) == (0, "[]\n", "")


def test_every_option_is_in_the_docs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "watch.md").read_text()
    told = []
    for command in ("run", "watch"):
        with pytest.raises(SystemExit):
            client.main([command, "--help"])
        told.append(set(re.findall(r"--[a-z][a-z-]+", capsys.readouterr().out)))
    assert len(told[1] - told[0]) == 4
    assert not [option for option in told[1] - told[0] if option not in page]


def test_a_wrong_limit_is_reported_and_the_command_runs(alone: Bench) -> None:
    status, output, errors = alone.run("watch", "--silence", "soon", "--", "echo", "fine")
    assert (status, output) == (0, "fine\n")
    assert errors == "torchtriage-client: --silence: not a number above 0: soon: the command runs unreported\n"


def test_output_that_goes_into_a_file_is_watched(bench: Bench) -> None:
    path = bench.folder / "job.out"
    with path.open("ab") as file, watched(bench, stdout=file, stderr=file) as process:
        deadline = time.monotonic() + 120
        while "more:" not in path.read_text():
            assert time.monotonic() < deadline, path.read_text()
            time.sleep(0.1)
        process.communicate(b"0\n")
    assert path.read_text().count("torchtriage-client: no output for") == 1
    assert bench.triaged()["verdict"]["outcome"] == "healthy"


HANGS = """
import time
import torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
for step in range(3):
    dist.all_reduce(torch.ones(8))
    print(f"step {step} loss 2.5", flush=True)
def waits_for_a_file_that_never_comes():
    time.sleep(600)
if rank == 1:
    waits_for_a_file_that_never_comes()
dist.all_reduce(torch.ones(8))
"""


def test_the_rank_that_holds_the_others_up_is_named_while_it_hangs(bench: Bench) -> None:
    torchrun = os.environ.get("TORCHRUN") or shutil.which("torchrun", path=Path(sys.executable).parent)
    if torchrun is None:
        pytest.skip("no torchrun here (torch is not installed, and $TORCHRUN names none)")
    (bench.folder / "train.py").write_text(HANGS)
    command = ("watch", "--silence", "4", "--patience", "15", "--stop-after", "1", "--", torchrun, "--standalone")
    with ended(bench.start(*command, "--nproc-per-node", "3", "train.py")) as process:
        until(process, "more:")
        incident = bench.triaged()
        process.communicate(timeout=120)
    verdict = incident["verdict"]
    assert verdict["run"]["suspect_ranks"] == [1], verdict["root_cause"]
    assert "waits_for_a_file_that_never_comes" in verdict["answer"]["says"]


def test_processes_that_share_a_rank_with_their_parent_are_none() -> None:
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"
    environment = {**os.environ, **RANK}
    with subprocess.Popen(
        [sys.executable, "-c", script], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert client._ranks_below(process.pid) == {3: process.pid}
        process.communicate(b"\n")
