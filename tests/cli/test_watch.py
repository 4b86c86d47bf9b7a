"""`torchtriage watch` as people run it: a process of its own, beside real ones that write, stop and go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PROGRAM = [sys.executable, "-c", "import sys; from torchtriage.cli.main import main; sys.exit(main())", "watch"]
SHORT = ["--silence", "1", "--patience", "2", "--poll", "0.1"]
# Writes steps of two ranks until it is stopped; SIGUSR1 has it write what the words say.
WRITER = """
import signal, sys, time
path, words = sys.argv[1:]
def write(text):
    with open(path, "a") as file:
        file.write(text)
signal.signal(signal.SIGUSR1, lambda *_: write(words + "\\n"))
for step in range(100_000):
    write(f"[rank0]: step {step} loss 2.5\\n[rank1]: step {step} loss 2.5\\n")
    time.sleep(0.05)
"""


@pytest.fixture
def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRIAGE_", "TORCHTRIAGE_"))}
    return kept | {"PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "train.log"


@contextmanager
def started(command: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Lets nothing of a test live on."""
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def writing(log: Path, words: str = "") -> Iterator[subprocess.Popen[str]]:
    with started([sys.executable, "-c", WRITER, str(log), words]) as process:
        yield process


def report(watch: subprocess.Popen[str]) -> dict[str, Any]:
    assert watch.stdout is not None
    line = watch.stdout.readline()
    assert line, watch.stderr and watch.stderr.read()
    told: dict[str, Any] = json.loads(line)
    return told


@pytest.mark.slow
def test_a_process_that_is_stopped_and_goes_on(log: Path, environment: dict[str, str]) -> None:
    with (
        writing(log) as writer,
        started([*PROGRAM, "--json", "--pid", str(writer.pid), *SHORT, str(log)], env=environment) as watch,
    ):
        while not log.exists() or log.stat().st_size < 3000:
            assert watch.poll() is None
        writer.send_signal(signal.SIGSTOP)
        told = report(watch)
        assert (told["event"], [each["ranks"] for each in told["ranks"]]) == ("silent", ["0-1"])
        assert told["step"] == int(log.read_text().splitlines()[-1].split()[2])
        verdict = told["verdict"]
        assert (verdict["provisional"], verdict["root_cause"]["entry"]) == (True, "perf.hang")
        assert verdict["answer"]["case"] == "watched-silent"
        assert verdict["root_cause"]["evidence"][0]["file"] == "torchtriage-watch.log"
        writer.send_signal(signal.SIGCONT)
        assert report(watch)["event"] == "resumed"
        writer.kill()
        writer.wait()
        told = report(watch)
        assert (told["event"], told["verdict"]["provisional"]) == ("ended", False)
        assert watch.wait(60) == 0


@pytest.mark.slow
def test_a_watchdog_is_reported_at_once(log: Path, environment: dict[str, str]) -> None:
    word = (
        "[rank1]:[E1120 16:35:22.562200028 ProcessGroupNCCL.cpp:688] [Rank 1] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=168, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600021 "
        "milliseconds before timing out."
    )
    with (
        writing(log, word) as writer,
        started([*PROGRAM, "--json", *SHORT, "--silence", "100", str(log)], env=environment) as watch,
    ):
        while not log.exists() or log.stat().st_size < 3000:
            assert watch.poll() is None
        writer.send_signal(signal.SIGUSR1)
        told = report(watch)
        assert (told["event"], told["line"]) == ("watchdog", word)
        assert told["verdict"]["provisional"] is True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lang", "words"), [("en", "no output for 2 s (limit 2 s)"), ("zh", "已有 2 秒没有输出（时限 2 秒）")]
)
def test_a_silent_log_is_reported_and_ctrl_c_gives_a_last_verdict(
    log: Path, environment: dict[str, str], lang: str, words: str
) -> None:
    log.write_text("step 7 loss 2.5\nstep 8 loss 2.4\n")
    with started([*PROGRAM, *SHORT, "--lang", lang, str(log)], env=environment) as watch:
        assert watch.stdout is not None
        told = watch.stdout.readline()
        assert words in told
        assert "8" in told.rpartition("step" if lang == "en" else "第")[2]
        shown = iter(watch.stdout.readline, "")
        assert any("perf.hang/watched-silent" in line for line in shown)
        watch.send_signal(signal.SIGINT)
        rest = watch.stdout.read()
        assert str(log) in rest
        assert watch.wait(60) == 0


def test_a_log_that_stopped_long_ago_is_reported_at_once(log: Path, environment: dict[str, str]) -> None:
    log.write_text("step 7 loss 2.5\n")
    os.utime(log, (log.stat().st_mtime - 2000,) * 2)
    with started([*PROGRAM, "--json", str(log)], env=environment) as watch:
        told = report(watch)
        assert told["event"] == "silent"
        assert 2000 <= told["seconds"] < 2100


@pytest.mark.slow
def test_files_that_are_taken_away_end_it(log: Path, environment: dict[str, str]) -> None:
    with writing(log), started([*PROGRAM, *SHORT, str(log)], env=environment) as watch:
        while not log.exists():
            assert watch.poll() is None
    log.unlink(missing_ok=True)
    with started([*PROGRAM, *SHORT, str(log.parent)], env=environment) as watch:
        log.write_text("step 7 loss 2.5\n")
        assert watch.stdout is not None
        assert "no output" in watch.stdout.readline()
        log.unlink()
        assert any("the watched files are gone" in line for line in watch.stdout)
        assert watch.wait(60) == 0


@pytest.mark.slow
def test_it_stays_small_whatever_is_written(log: Path, environment: dict[str, str]) -> None:
    lines = b"".join(b"[rank%d]: step %d loss 2.5 %s\n" % (at % 512, at, b"x" * 80) for at in range(40_000))
    with (
        log.open("wb", 0) as file,
        started([*PROGRAM, "--json", *SHORT, str(log)], env=environment) as watch,
    ):
        for _ in range(30):  # 140 MB
            file.write(lines)
        told = report(watch)
        assert told["verdict"]["stats"]["bytes"] > 30 * len(lines)
        status = Path(f"/proc/{watch.pid}/status").read_text()
        peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
        assert peak < 50 * 1024


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path, environment: dict[str, str]) -> None:
    with started([*PROGRAM, str(tmp_path / "nowhere" / "train.log")], env=environment) as watch:
        _, errors = watch.communicate(timeout=60)
        assert (watch.returncode, errors) == (
            2,
            f"torchtriage: {tmp_path}/nowhere/train.log: no such file or folder\n",
        )
