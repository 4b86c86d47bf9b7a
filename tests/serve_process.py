"""Runs `torchtriage serve` in a separate process, as people do."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SERVE = [str(Path(sys.executable).with_name("torchtriage")), "serve", "--port", "0"]
INCIDENTS = "/api/v1/incidents?wait=0"


@dataclass(frozen=True, slots=True)
class Served:
    port: int
    process: subprocess.Popen[str]

    def ask(self, body: bytes, headers: dict[str, str] | None = None, seconds: float = 120) -> tuple[int, bytes]:
        """Posts a log. Returns status and body of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            connection.request("POST", INCIDENTS, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def most_memory(self) -> int:
        """Returns the peak memory of the server process in bytes, without the triage processes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM:"))


@contextmanager
def serving(data: Path, settings: dict[str, str] | None = None) -> Iterator[Served]:
    """Yields the server when it listens, and stops it at the end."""
    environment = os.environ | {"TRIAGE_DATA_DIR": str(data), "TRIAGE_LOG_LEVEL": "error"} | (settings or {})
    with (data / "errors.txt").open("w") as errors:
        process = subprocess.Popen(SERVE, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            assert process.stdout is not None
            told = process.stdout.readline()
            assert told.startswith("torchtriage listens on"), (data / "errors.txt").read_text()
            served = Served(int(told.split()[3].rstrip(",").rpartition(":")[2]), process)
            served.ask(b"the first one\n")  # waits until requests are answered
            yield served
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
