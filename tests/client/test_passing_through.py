"""The command runs as it would without the client: status, signals, terminal, input and output."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.running import Bench, ended
from torchtriage.client import torchtriage_client as client

# Handlers write past print, which may be at work when a signal comes.
LISTENER = """
import os, signal, sys
for name in ("INT", "TERM", "HUP", "USR1", "USR2"):
    number = getattr(signal, "SIG" + name)
    signal.signal(number, lambda number, frame: os.write(1, (signal.Signals(number).name + "\\n").encode()))
print("ready", flush=True)
while True:
    signal.pause()
"""


@pytest.mark.parametrize(
    ("ends", "status"), [("exit 0", 0), ("exit 3", 3), ("exit 137", 137), ("kill -9 $$", -9), ("kill -SEGV $$", -11)]
)
def test_the_status_is_the_commands_own(alone: Bench, ends: str, status: int) -> None:
    assert alone.run("run", "--", "sh", "-c", ends)[0] == status


def test_a_missing_command_is_reported_as_a_shell_does(alone: Bench) -> None:
    status, _, errors = alone.run("run", "--", "no-such-program")
    assert (status, errors) == (127, "torchtriage-client: no-such-program: No such file or directory\n")
    assert not alone.captures()


@pytest.mark.parametrize("url", ["", "ftp://nonsense"])
def test_without_a_service_the_command_just_runs(alone: Bench, url: str) -> None:
    status, output, errors = alone.script("print(1); raise SystemExit(7)", environment={"TORCHTRIAGE_URL": url})
    assert (status, output) == (7, "1\n")
    assert errors.count("\n") == 1
    assert "unreported" in errors


def test_bytes_pass_unchanged_and_apart(alone: Bench) -> None:
    script = "import os\nfor fd in (1, 2): os.write(fd, bytes(range(256)) * 20000)"
    process = alone.start("run", "--", sys.executable, "-c", script)
    output, errors = process.communicate(timeout=60)
    assert output == errors == bytes(range(256)) * 20000


def test_input_passes(alone: Bench) -> None:
    process = alone.start("run", "--", "tr", "a-z", "A-Z")
    assert process.communicate(b"a line\n" * 10_000, timeout=60)[0] == b"A LINE\n" * 10_000


def test_a_reader_that_goes_away_ends_the_command(alone: Bench) -> None:
    process = alone.start("run", "--", "yes")
    assert process.stdout is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.wait(60) in (1, -signal.SIGPIPE)
    process.communicate()


@pytest.mark.parametrize("to_the_group", [False, True])
def test_a_signal_reaches_the_command_once(alone: Bench, to_the_group: bool) -> None:
    with ended(alone.start("run", "--", sys.executable, "-c", LISTENER, start_new_session=True)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        heard = []
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            (os.killpg if to_the_group else os.kill)(process.pid, number)
            heard.append(process.stdout.readline().decode().strip())
        os.kill(process.pid, signal.SIGUSR2)  # were there a second one of anything, it would stand before this
        heard.append(process.stdout.readline().decode().strip())
        assert heard == ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2"]


def test_a_signal_to_the_group_is_not_passed_on_where_the_machine_is_busy(alone: Bench) -> None:
    with ended(alone.start("run", "--", sys.executable, "-c", LISTENER, start_new_session=True)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        [witness] = [child for child in children(process.pid) if command_line(child) == command_line(process.pid)]
        os.kill(witness, signal.SIGSTOP)
        os.killpg(process.pid, signal.SIGTERM)
        assert process.stdout.readline() == b"SIGTERM\n"
        time.sleep(2 * client.Witness.GRACE)  # the witness is later than a signal ever is
        os.kill(witness, signal.SIGCONT)
        os.kill(process.pid, signal.SIGUSR2)
        assert process.stdout.readline() == b"SIGUSR2\n"


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def command_line(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def test_ignored_signals_stay_ignored(alone: Bench) -> None:
    script = "import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    command = " ".join(["trap '' HUP;", "exec", *alone.command("run", "--", sys.executable, "-c", f'"{script}"')])
    done = subprocess.run(["sh", "-c", command], env=alone.environment, capture_output=True, text=True, timeout=60)
    assert done.stdout == "True set()\n"


def test_a_killed_client_leaves_no_command_behind(alone: Bench) -> None:
    script = f"import os; print(os.getpid(), flush=True)\n{LISTENER.replace('os.write(1, ', 'sys.exit(')}"
    process = alone.start("run", "--", sys.executable, "-c", script)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    assert process.stdout.readline() == b"ready\n"
    alive = os.pidfd_open(child)
    process.kill()
    process.communicate()
    assert select.select([alive], [], [], 60)[0], "the command is still there"
    os.close(alive)


def test_a_background_process_keeps_its_output(alone: Bench) -> None:
    os.mkfifo(alone.folder / "go")
    with ended(alone.start("run", "--", "sh", "-c", "(read line < go; echo late) & echo early")) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"early\n"
        assert process.wait(60) == 0
        (alone.folder / "go").write_text("now\n")
        assert process.stdout.readline() == b"late\n"


@pytest.fixture
def terminal(alone: Bench) -> Iterator[tuple[int, int]]:
    """Returns the client's process, which runs LISTENER on a terminal of its own, and that terminal's other end."""
    size = "import os, sys; print([sys.__dict__[name].isatty() for name in ('stdin', 'stdout', 'stderr')], tuple(os.get_terminal_size(1)))"
    winch = "signal.signal(signal.SIGWINCH, lambda *_: os.write(1, (str(tuple(os.get_terminal_size(1))) + chr(10)).encode()))"
    pid, other = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 31, 111, 0, 0))
        script = f"{size}\nimport signal\n{winch}\n{LISTENER}"
        os.execvpe(sys.executable, alone.command("run", "--", sys.executable, "-c", script), alone.environment)
    yield pid, other
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(other)


def test_a_terminal_stays_a_terminal(terminal: tuple[int, int]) -> None:
    _, other = terminal
    lines = os.fdopen(os.dup(other), "r", newline="\r\n")
    assert lines.readline() == "[True, True, True] (111, 31)\r\n"
    assert lines.readline() == "ready\r\n"
    os.write(other, b"\x03")
    assert "SIGINT" in lines.readline()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 80, 0, 0))
    seen = lines.readline()
    assert "(80, 20)" in seen or "(80, 20)" in lines.readline()  # the first signal can be quicker than the new size
    lines.close()


def test_an_output_file_is_written_by_the_command_itself(alone: Bench, tmp_path: Path) -> None:
    path = tmp_path / "out.log"
    path.write_text("from before\n")
    with path.open("ab") as file:
        script = "import os; print(os.path.realpath('/proc/self/fd/1'))"
        process = alone.start("run", "--", sys.executable, "-c", script, stdout=file, stderr=file)
        assert process.wait(60) == 0
        process.communicate()
    assert path.read_text() == f"from before\n{path}\n"
