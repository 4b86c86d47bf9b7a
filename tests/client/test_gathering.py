"""What the client adds to the report of a command that failed: what the host knows of it, within limits."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from tests.client.running import OUT_OF_MEMORY, Bench, ended
from tests.client.test_watch import GATHER, HOST, program
from tests.full_disk import fill, tmpfs
from torchtriage.client import torchtriage_client as client

FALLEN = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus."
NOW = "T=$(date -u +%Y-%m-%dT%H:%M:%S); "
XID = "'\"$T\"',440118+00:00 " + FALLEN  # inside of a shell's quotes
FAILS = "import sys; print('step 1 loss 2.5', flush=True); sys.exit(1)"
QUIET = "exit 1"  # of a program that may not


def programs(bench: Bench, **texts: str) -> dict[str, str]:
    """Returns an environment in which the host's programs are these; dmesg and journalctl may not, where nothing is said."""
    environment = dict(GATHER)
    for name, text in ({"dmesg": QUIET, "journalctl": QUIET} | texts).items():
        environment |= program(bench.folder / "bin", name.replace("_", "-"), text)
    return environment


def names_in(bundle: Path) -> list[str]:
    """Returns the names of the files that a report in the spool holds."""
    with bundle.open("rb") as file:
        file.readline()  # its parameters
        with tarfile.open(fileobj=file, mode="r:gz") as tar:
            return tar.getnames()


def test_evidence_from_the_host_is_sent_with_the_report(bench: Bench) -> None:
    environment = programs(bench, dmesg=f"{NOW}echo '{XID}'", nvidia_smi="echo '==============NVSMI LOG=============='")
    assert bench.script(FAILS, environment=environment)[0] == 1
    assert FALLEN in bench.log(f"dmesg.{HOST}.txt")
    assert "NVSMI LOG" in bench.log(f"nvidia-smi-q.{HOST}.txt")
    taken = {source["taken_for"] for source in bench.triaged()["verdict"]["run"]["sources"]}
    assert {"log", "kernel log", "nvidia-smi"} <= taken


def test_only_the_newest_lines_of_the_kernel_are_sent(bench: Bench) -> None:
    lines = f"{NOW}i=0; while [ $i -lt 9000 ]; do echo '{XID}' $i; i=$((i+1)); done"
    bench.script(FAILS, environment=programs(bench, dmesg=lines))
    sent = bench.log(f"dmesg.{HOST}.txt").splitlines()
    assert all(FALLEN in line for line in sent)
    file = next(each for each in bench.incidents()[0]["log"]["files"] if f"dmesg.{HOST}" in each["name"])
    assert 200 << 10 < file["bytes"] <= 256 << 10


@pytest.mark.parametrize(
    ("told", "newer"),
    [
        ("2020-01-01T00:00:00,5+00:00 old\n2030-01-01T02:00:00,5+02:00 new\n more\n", 2),
        ("[Wed Jan  1 00:00:00 2020] old\n[Tue Jan  1 12:00:00 2030] new\n", 1),
        ("2020-01-01T00:00:00,5+00:00 old\n", 0),
        ("[  131.440118] of no clock\n", 0),
        ("[]\nno line of a kernel\n", 0),
    ],
)
def test_lines_from_before_the_job_are_none_of_it(told: str, newer: int) -> None:
    since = 1893456000.0 - 600  # ten minutes before 2030
    kept = client._lines_since(told.encode(), since).decode()
    assert kept == "".join(told.splitlines(True)[len(told.splitlines()) - newer :])


def test_a_kernel_log_that_may_not_be_read_costs_nothing(alone: Bench) -> None:
    status, _, errors = alone.script(FAILS, environment=programs(alone))
    assert (status, "not gathered" in errors, len(alone.bundles())) == (1, False, 1)


def test_nothing_is_gathered_of_a_command_that_ends_well_or_where_it_is_not_wanted(bench: Bench) -> None:
    asked = bench.folder / "asked"
    environment = programs(bench, dmesg=f"touch {asked}", nvidia_smi=f"touch {asked}")
    assert bench.script("print('step 1 loss 2.5')", environment=environment)[0] == 0
    assert bench.script(FAILS, environment=environment | {"TORCHTRIAGE_GATHER": "no"})[0] == 1
    assert not asked.exists()


@pytest.mark.slow  # it waits the seconds
@pytest.mark.parametrize("name", ["nvidia_smi", "dmesg"])
def test_a_program_that_hangs_is_given_up_and_reported(alone: Bench, name: str) -> None:
    environment = programs(alone, **{name: "trap '' TERM; sleep 600"}) | {"TORCHTRIAGE_TIMEOUT": "9"}
    status, _, errors = alone.script(OUT_OF_MEMORY, environment=environment)
    assert (status, len(alone.bundles())) == (1, 1)
    assert f"not gathered: {name.replace('_', '-')}: no answer within 3 s" in errors


def test_a_full_disk_costs_neither_the_status_nor_the_report(bench: Bench) -> None:
    """All that the client can write to is full, but for /dev/shm."""
    with tmpfs(bench.folder / "full", 4) as full:
        places = {"TORCHTRIAGE_SPOOL": str(full / "spool"), "TORCHTRIAGE_SCRATCH": str(full / "scratch")}
        environment = programs(bench, dmesg=f"{NOW}echo '{XID}'") | places
        command = ("run", "--", sys.executable, "-c", "print(1, flush=True); input(); exit(3)")
        with ended(bench.start(*command, environment=environment)) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"1\n"
            fill(full)
            process.communicate(b"\n", timeout=120)
            assert process.returncode == 3
    assert FALLEN in bench.log(f"dmesg.{HOST}.txt")


def test_dumps_that_a_failure_left_are_taken_and_older_ones_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", str(tmp_path / "trace_rank_"))
    (tmp_path / "trace_rank_0").write_text("{}")
    found = client.gather_at_end(str(tmp_path / "evidence"), time.time() - 60)
    assert [member.name for member in found.files] == ["dumps/trace_rank_0"]
    assert not client.gather_at_end(str(tmp_path / "evidence"), time.time() + 60).files


def test_what_a_hang_has_shown_is_not_gathered_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "nvidia-smi", "echo 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(client, "_gather_kernel", lambda *_: None)
    name = f"nvidia-smi-q.{HOST}.txt"
    assert [member.name for member in client.gather_at_end(str(tmp_path / "evidence"), time.time()).files] == [name]
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / name).write_text("then")
    assert not client.gather_at_end(str(tmp_path / "evidence"), time.time()).files


def test_a_running_job_is_reported_with_its_evidence_on_request(bench: Bench) -> None:
    (bench.folder / "run.log").write_text("step 1 loss 2.5\nstep 2 loss 2.4\n")
    environment = programs(
        bench,
        nvidia_smi="echo '==============NVSMI LOG=============='",
        py_spy="echo 'Thread 0x7F (idle): \"MainThread\"'; echo '    read_shard (loader.py:71)'",
    )
    waits = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(waits, env=os.environ | {"RANK": "3"}, stdin=subprocess.PIPE) as job:
        status, output, _ = bench.run("report", "run.log", "--gather", str(job.pid), environment=environment)
        job.communicate()
    assert (status, job.returncode) == (0, 0)  # the job was only looked at
    assert "state: provisional" in output
    assert "read_shard" in bench.log("stacks/rank_3.txt")
    assert "NVSMI LOG" in bench.log(f"nvidia-smi-q.{HOST}.txt")
    assert bench.triaged()["verdict"]["provisional"]


def test_a_job_that_does_not_run_is_named(bench: Bench) -> None:
    (bench.folder / "run.log").write_text("step 1 loss 2.5\n")
    with subprocess.Popen(["true"]) as job:
        job.wait()
    status, _, errors = bench.run("report", "run.log", "--gather", str(job.pid))
    assert (status, bench.incidents()) == (2, [])
    assert errors == f"torchtriage-client: --gather: process {job.pid} cannot be read: No such file or directory\n"
