"""Starts `torchtriage` in a separate process, as people do, and sends logs to it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy.engine import make_url

from tests.services.logs import OUT_OF_MEMORY

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT = 120  # seconds, for a busy machine
ENDED = (0, -signal.SIGTERM)  # exit codes of a command that was told to stop


@dataclass(frozen=True, slots=True)
class Running:
    """A running command: its process, the file with its messages, and its port."""

    process: subprocess.Popen[str]
    messages: Path
    port: int = 0

    def ask(self, method: str, path: str, body: bytes = b"", timeout: float = 20) -> tuple[int, Any]:
        """Returns (status, answer), or (0, None) without an answer in time."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            content = answer.read()
            return answer.status, json.loads(content) if "json" in answer.headers["Content-Type"] else content
        except (OSError, http.client.HTTPException):
            return 0, None
        finally:
            connection.close()


@contextmanager
def command(name: str, folder: Path, url: str = "", **more: str) -> Iterator[Running]:
    """Runs `torchtriage NAME` with a data folder and a database inside the `with` block. Fails if it does not stop with
    a good exit code when told to."""
    environment = os.environ | {"TRIAGE_DATA_DIR": str(folder), "TRIAGE_WORKERS": "0", "TRIAGE_LOG_LEVEL": "warning"}
    environment |= {"TRIAGE_DATABASE_URL": url} if url else {}
    line = [sys.executable, "-m", "torchtriage.cli.main", name, *(["--port", "0"] if name == "serve" else [])]
    messages = folder.with_name(f"{folder.name}-{name}.log")
    with messages.open("a") as log:
        process = subprocess.Popen(
            line, cwd=ROOT, env=environment | more, stdout=subprocess.PIPE, stderr=log, text=True
        )
    with process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said, messages.read_text()
            port = int(said.split()[3].rstrip(",").rpartition(":")[2]) if name == "serve" else 0
            yield Running(process, messages, port)
            if process.poll() is None:
                process.terminate()
                assert process.wait(timeout=TIMEOUT) in ENDED, messages.read_text()
        finally:
            process.kill()


class Sender:
    """Sends logs, each different, from a thread until it is stopped."""

    def __init__(self, server: Running, pause: float = 0.1, name: str = "") -> None:
        """`pause` is the number of seconds between two logs."""
        self.accepted: list[str] = []
        self.refused: set[int] = set()
        self._server, self._pause, self._name = server, pause, name
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._send)

    def __enter__(self) -> Sender:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def more(self, count: int) -> None:
        """Waits until `count` more logs were accepted."""
        wanted = len(self.accepted) + count
        until(lambda: len(self.accepted) >= wanted)

    def _send(self) -> None:
        number = 0
        while not self._stopping.wait(self._pause):
            number += 1
            log = f"run {self._name} {number}\n".encode() + OUT_OF_MEMORY
            status, answer = self._server.ask("POST", "/api/v1/incidents?wait=0", log)
            if status in (200, 201, 202):
                self.accepted.append(str(answer["id"]))
            else:
                self.refused.add(status)


def states(url: str) -> dict[str, str]:
    """Returns the state of each incident in a Postgres database."""
    with psycopg.connect(make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)) as asking:
        return {str(number): state for number, state in asking.execute("SELECT number, state FROM incidents")}


def until(true: Callable[[], object], seconds: float = TIMEOUT) -> None:
    """Waits until the condition is true, at most `seconds`."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)
