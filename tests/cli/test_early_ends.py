"""Commands that run until they are stopped, and end while they start: one line says why, and nothing stands beside it."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.command_process import TIMEOUT, until

# As where what HIDDEN names is not installed.
PROGRAM = (
    "import os, sys; sys.modules[os.environ['HIDDEN']] = None; from torchtriage.cli.main import main; sys.exit(main())"
)
SERVICE = {"HIDDEN": "torchtriage.services.service"}  # so it can't be loaded, which takes a second
CLUSTER = """
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]
contexts: [{name: c, context: {cluster: c}}]
"""


def started(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    surroundings = os.environ | {"TRIAGE_DATA_DIR": str(folder), "TRIAGE_LOG_LEVEL": "warning", "HIDDEN": "slack_sdk"}
    surroundings |= environment
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.Popen(command, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "environment", "status", "said"),
    [
        ("serve", {"TRIAGE_WORKERS": "many", **SERVICE}, 2, "TRIAGE_WORKERS: "),
        ("serve --port TAKEN", SERVICE, 1, "can't listen on 127.0.0.1:TAKEN: Address already in use"),
        # Found when the processes that triage are already being started.
        ("serve --port 0", {"TRIAGE_SLACK_SIGNING_SECRET": "x"}, 2, "TRIAGE_SLACK_SIGNING_SECRET needs the extra `slack`"),
        ("worker", {"TRIAGE_DATABASE_URL": "postgresql://127.0.0.1:9/none"}, 1, "the database is unavailable"),
        ("watch-kubernetes", {}, 2, "TORCHTRIAGE_URL is not set"),
        ("watch-kubernetes --url http://127.0.0.1:9 --folder FOLDER --kubeconfig FOLDER/c --port TAKEN", {}, 1,
         "port TAKEN can't be used: Address already in use"),
    ],
)  # fmt: skip
def test_an_error_before_the_work_is_one_line(
    command: str, environment: dict[str, str], status: int, said: str, tmp_path: Path
) -> None:
    (tmp_path / "c").write_text(CLUSTER)
    with socket.create_server(("0.0.0.0", 0)) as taken:
        names = {"TAKEN": str(taken.getsockname()[1]), "FOLDER": str(tmp_path)}
        for name, value in names.items():
            command, said = command.replace(name, value), said.replace(name, value)
        with started(tmp_path, *command.split(), **environment) as running:
            output, errors = running.communicate(timeout=TIMEOUT)
    assert (running.returncode, output) == (status, ""), errors
    (line,) = errors.splitlines()
    assert line.startswith(f"torchtriage: {said}")


def test_a_server_that_is_stopped_while_it_starts_says_nothing(tmp_path: Path) -> None:
    lock = tmp_path / "torchtriage.db.lock"
    with closing(sqlite3.connect(tmp_path / "torchtriage.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")  # it waits for this, with its lock in hand
        with started(tmp_path, "serve", "--port", "0") as running:
            until(lambda: lock.exists() and lock.read_bytes())
            running.send_signal(signal.SIGTERM)
            assert running.communicate(timeout=TIMEOUT) == ("", "")
    assert running.returncode == -signal.SIGTERM
