"""`torchtriage run` as people run it: a process of its own, around real commands."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PYTHON = [sys.executable, "-u", "-c"]
PROGRAM = [sys.executable, "-c", "import sys; from torchtriage.cli.main import main; sys.exit(main())", "run"]
# Fails once with this error, then ends well.
ONCE = """
import os, sys
print("step 1 loss 2.5")
attempt = int(os.environ["TORCHTRIAGE_ATTEMPT"])
if attempt < {failures}:
    print("step 2 loss 2.4")
    raise {error}
print("training finished", {{name: os.environ.get("TORCHTRIAGE_" + name) for name in ("CHECKPOINT", "EXCLUDE_HOSTS")}})
"""
BUSY = 'RuntimeError("jammed")'
OOM = 'RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.10 GiB is free.")'
LISTENER = """
import os, signal, subprocess, sys
inner = "import os, signal; signal.signal(signal.SIG{0}, lambda *_: (os.write(1, b'inner\\\\n'), os._exit(3))); os.write(1, b'ready\\\\n'); signal.pause()"
child = subprocess.Popen([sys.executable, "-c", inner])
signal.signal(signal.SIG{0}, lambda *_: None)
child.wait()
print("outer", flush=True)
sys.exit(7)
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRIAGE_", "TORCHTRIAGE_"))}
    folder = tmp_path / "tmp"
    folder.mkdir()
    return kept | {"PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(folder)}


class Runner:
    """Starts `torchtriage run` in a folder of its own."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.environment = folder, environment

    def start(self, *words: str, **options: Any) -> subprocess.Popen[bytes]:
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return subprocess.Popen([*PROGRAM, *words], cwd=self.folder, env=self.environment, **(pipes | options))

    def run(self, *words: str) -> tuple[int, str, str]:
        """Returns status and what was written to the two outputs."""
        with self.start(*words) as process:
            output, errors = process.communicate(timeout=120)
        return process.returncode, output.decode(), errors.decode()

    def left(self) -> list[Path]:
        return list(Path(self.environment["TMPDIR"]).iterdir())


@pytest.fixture
def runner(tmp_path: Path, environment: dict[str, str]) -> Runner:
    return Runner(tmp_path, environment)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "status"), [("exit 0", 0), ("exit 3", 3), ("exit 137", 137), ("kill -9 $$", -9), ("kill -SEGV $$", -11)]
)
def test_the_status_is_the_commands_own(runner: Runner, command: str, status: int) -> None:
    assert runner.run("--restarts", "0", "--", "sh", "-c", command)[0] == status
    assert runner.left() == []


def test_a_failure_is_shown_decided_and_tried_again(runner: Runner) -> None:
    status, output, errors = runner.run("--", *PYTHON, ONCE.format(failures=1, error=BUSY))
    assert status == 0
    assert output == (
        "step 1 loss 2.5\nstep 2 loss 2.4\nstep 1 loss 2.5\n"
        "training finished {'CHECKPOINT': None, 'EXCLUDE_HOSTS': None}\n"
    )
    assert "RuntimeError: jammed" in errors
    assert "torchtriage: Decision       Restart\n" in errors
    assert errors.endswith("torchtriage: attempt 1 starts\n")


def test_a_failure_that_a_restart_does_not_help_is_not_retried(runner: Runner) -> None:
    status, output, errors = runner.run("--", *PYTHON, ONCE.format(failures=9, error=OOM))
    assert (status, output.count("step 1 ")) == (1, 1)
    assert "torchtriage: Decision       Stop\n" in errors
    assert "attempt 1 starts" not in errors


def test_the_same_failure_again_uses_the_budget_up(runner: Runner) -> None:
    status, output, errors = runner.run("--lang", "zh", "--", *PYTHON, ONCE.format(failures=9, error=BUSY))
    assert (status, output.count("step 1 ")) == (1, 2)
    assert "决策      等待人工处理" in errors


def test_a_dry_run_only_says_what_it_would_do(runner: Runner) -> None:
    status, output, errors = runner.run("--dry-run", "--", *PYTHON, ONCE.format(failures=9, error=BUSY))
    assert (status, output.count("step 1 ")) == (1, 1)
    assert errors.endswith("torchtriage: dry run: the command is not restarted\n")


def test_the_history_goes_on_from_run_to_run(runner: Runner) -> None:
    words = (
        "--restarts",
        "1",
        "--history",
        "history.jsonl",
        "--dry-run",
        "--",
        *PYTHON,
        ONCE.format(failures=9, error=BUSY),
    )
    runner.run(*words)
    runner.run(*words)
    kept = [json.loads(line) for line in (runner.folder / "history.jsonl").read_text().splitlines()]
    assert [(one["attempt"]["attempt"], one["action"]) for one in kept] == [(0, "restart"), (1, "wait")]


def test_a_host_that_is_to_be_left_out_starts_nothing_again(runner: Runner) -> None:
    here = socket.gethostname()
    xid = (
        f"Nov 16 10:00:00 {here} kernel: NVRM: Xid (PCI:0000:3b:00): 48, pid=4711, name=python, DBE (double bit error)"
    )
    status, output, errors = runner.run("--", "sh", "-c", f"echo '{xid}'; exit 1")
    assert (status, output.count("Xid")) == (1, 1)
    assert f"Decision       Restart without {here}" in errors
    assert "this host must be excluded" in errors


def test_output_passes_through_byte_by_byte_and_its_copy_is_bounded(runner: Runner) -> None:
    script = "import os, sys\nfor at in range(90): os.write(1, bytes([at, 255, 10]) * 500_000)\nos.write(2, b'done'); sys.exit(1)"
    with runner.start("--restarts", "0", "--", *PYTHON, script) as process:
        output, errors = process.communicate(timeout=300)
    assert output == b"".join(bytes([at, 255, 10]) * 500_000 for at in range(90))
    assert errors.startswith(b"done")
    assert runner.left() == []


def test_a_file_is_written_by_the_command_itself(runner: Runner) -> None:
    path = runner.folder / "out.log"
    path.write_text("RuntimeError: from before\n")
    with path.open("ab") as file:
        script = "import os; print(os.path.realpath('/proc/self/fd/1')); raise SystemExit(1)"
        process = runner.start("--restarts", "0", "--", *PYTHON, script, stdout=file, stderr=file)
        assert process.wait(60) == 1
        process.communicate()
    assert path.read_text().startswith(f"RuntimeError: from before\n{path}\n")


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP"])
def test_a_signal_reaches_the_whole_group_and_ends_the_restarts(runner: Runner, name: str) -> None:
    with runner.start("--", *PYTHON, LISTENER.format(name)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(getattr(signal, f"SIG{name}"))
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output, errors) == (7, b"inner\nouter\n", b"")


def test_a_signal_while_it_waits_ends_it_too(runner: Runner) -> None:
    (runner.folder / "policy.yaml").write_text("delay_seconds: [600]\n")
    command = ("--policy", "policy.yaml", "--", *PYTHON, ONCE.format(failures=9, error=BUSY))
    with runner.start(*command) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.split()[:4] == [b"torchtriage:", b"Delay", b"600", b"s"]:
                process.send_signal(signal.SIGTERM)
        output = process.communicate(timeout=60)[0]
    assert (process.returncode, output.count(b"step 1 ")) == (1, 1)


def test_files_of_an_attempt_are_removed_before_the_next(runner: Runner) -> None:
    script = (
        "import os, subprocess, sys\n"
        "if os.environ['TORCHTRIAGE_ATTEMPT'] == '0':\n"
        "    left = subprocess.Popen(['sleep', '600'])\n    open('pid', 'w').write(str(left.pid))\n"
        "    raise RuntimeError('jammed')\n"
        "pid = open('pid').read()\n"
        "state = open(f'/proc/{pid}/stat').read().split()[2] if os.path.exists(f'/proc/{pid}') else 'gone'\n"
        "print('left:', state)"
    )
    status, output, _ = runner.run("--", *PYTHON, script)
    assert status == 0
    assert output in ("left: gone\n", "left: Z\n")


def test_the_command_dies_with_it(runner: Runner) -> None:
    script = "import os, signal; os.write(1, str(os.getpid()).encode() + b'\\n'); signal.pause()"
    with runner.start("--", *PYTHON, script) as process:
        assert process.stdout is not None
        child = os.pidfd_open(int(process.stdout.readline()))
        process.kill()
        import select

        assert select.select([child], [], [], 60)[0], "the command is still there"
        os.close(child)


@pytest.fixture
def terminal(runner: Runner) -> Iterator[int]:
    """Returns the other end of a terminal on which `torchtriage run` runs a command that waits for Ctrl-C."""
    script = "import os, signal\nsignal.signal(signal.SIGINT, lambda *_: (print('caught', flush=True), os._exit(5)))\nprint(os.isatty(0), os.isatty(1), flush=True)\nprint('said', input())\nsignal.pause()"
    pid, other = pty.fork()
    if pid == 0:
        os.chdir(runner.folder)
        os.execvpe(PROGRAM[0], [*PROGRAM, "--", *PYTHON, script], runner.environment)
    yield other
    os.close(other)
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_on_a_terminal_the_command_reads_it_and_gets_ctrl_c(terminal: int) -> None:
    seen = b""

    def until(words: bytes) -> None:
        nonlocal seen
        deadline = time.monotonic() + 60
        while words not in seen:
            assert time.monotonic() < deadline, seen
            with contextlib.suppress(OSError):  # the other end is closed
                seen += os.read(terminal, 1000)

    until(b"True True")
    os.write(terminal, b"hello\n")
    until(b"said hello")
    os.write(terminal, b"\x03")
    until(b"caught")


def test_a_command_that_cannot_be_started_is_reported_as_a_shell_does(runner: Runner) -> None:
    assert runner.run("--", "no-such-program") == (127, "", "torchtriage: no-such-program: No such file or directory\n")
    assert runner.run("--", "/etc/hostname")[0] == 126
    assert runner.run("--restarts", "1")[0] == 2


def test_without_a_place_for_the_copy_the_command_just_runs(runner: Runner) -> None:
    full = (
        "import sys, tempfile; tempfile.tempdir = '/nowhere'; from torchtriage.cli.main import main; sys.exit(main())"
    )
    command = [sys.executable, "-c", full, "run", "--", "sh", "-c", "echo ran; kill -TERM $$"]
    done = subprocess.run(command, env=runner.environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "ran\n")
    assert done.stderr.startswith("torchtriage: cannot keep a copy of the output, so the command runs without triage: ")


def test_two_dashes_of_the_command_stay(runner: Runner) -> None:
    assert runner.run("--", "printf", "%s ", "a", "--", "b") == (0, "a -- b ", "")


def test_a_wrong_policy_or_history_starts_nothing(runner: Runner) -> None:
    (runner.folder / "policy.yaml").write_text("restart: 1\n")
    status, output, errors = runner.run("--policy", "policy.yaml", "--", "echo", "started")
    assert (status, output, errors) == (2, "", "torchtriage: --policy: policy.yaml: restart: unknown key\n")
    assert runner.run("--history", "policy.yaml", "--", "echo", "started")[:2] == (2, "")


TRAIN = """
import os, sys
import torch.distributed as dist
dist.init_process_group("gloo")
for step in range(3):
    print(f"step {step} loss 2.5", flush=True)
if dist.get_rank() == 1 and os.environ["TORCHTRIAGE_ATTEMPT"] == "0":
    raise ConnectionResetError("jammed")
dist.barrier()
dist.destroy_process_group()
"""


def test_a_real_torchrun_is_started_again(runner: Runner) -> None:
    program = os.environ.get("TORCHRUN") or shutil.which("torchrun", path=Path(sys.executable).parent)
    if program is None:
        pytest.skip("no torchrun here (torch is not installed, and $TORCHRUN names none)")
    (runner.folder / "train.py").write_text(TRAIN)
    del runner.environment["PYTHONPATH"]
    status, output, errors = runner.run("--", program, "--standalone", "--nproc-per-node", "2", "train.py")
    assert status == 0, errors
    assert output.count("step 2 loss") == 4
    assert "torchtriage: attempt 1 starts" in errors
