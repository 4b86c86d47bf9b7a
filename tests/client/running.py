"""The client as people run it: a process of its own, with an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CLIENT = Path(__file__).resolve().parents[2] / "app" / "torchtriage" / "client" / "torchtriage_client.py"
NOBODY = "http://127.0.0.1:9"  # the port of `discard`: nobody listens there
OUT_OF_MEMORY = """
print("step 1 loss 2.5", flush=True)
import sys
sys.stderr.write('''Traceback (most recent call last):
  File "/job/train.py", line 42, in <module>
    loss = model(batch)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.10 GiB is free.
''')
sys.exit(1)
"""


class Bench:
    """A home, a spool and a folder for what is captured, all of one test."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url, self.user = folder, url, folder.name
        self.spool, self.scratch = folder / "spool", folder / "scratch"
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "TORCHTRIAGE_URL": url, "TORCHTRIAGE_SPOOL": str(self.spool),
            "TORCHTRIAGE_SCRATCH": str(self.scratch), "TORCHTRIAGE_WAIT": "30", "TORCHTRIAGE_TIMEOUT": "60",
            "TORCHTRIAGE_USER": self.user, "TORCHTRIAGE_GATHER": "no",
        }  # fmt: skip

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, str(CLIENT), *arguments]

    def start(
        self, *arguments: str, environment: dict[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[bytes]:
        """Starts the client with pipes for its three streams, where `options` say nothing else."""
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        full = self.environment | (environment or {})
        return subprocess.Popen(self.command(*arguments), env=full, cwd=self.folder, **(pipes | options))

    def run(self, *arguments: str, **options: Any) -> tuple[int, str, str]:
        """Returns the client's status and what it wrote to its two outputs."""
        process = self.start(*arguments, **options)
        output, errors = process.communicate(timeout=120)
        return process.returncode, (output or b"").decode(), (errors or b"").decode()

    def script(self, text: str, *options: str, **more: Any) -> tuple[int, str, str]:
        """Returns the same of a Python script that the client runs."""
        return self.run("run", *options, "--", sys.executable, "-c", text, **more)

    def incidents(self) -> list[dict[str, Any]]:
        """Returns what the service got from this test, the newest first."""
        with urllib.request.urlopen(f"{self.url}/api/v1/incidents?user={self.user}") as answer:
            found: list[dict[str, Any]] = json.load(answer)["items"]
        return found

    def triaged(self) -> dict[str, Any]:
        """Returns the newest incident, once it has its verdict."""
        deadline = time.monotonic() + 300  # a busy machine triages later
        while (incident := self.incidents()[0])["state"] != "triaged":
            assert time.monotonic() < deadline, incident
            time.sleep(0.1)
        return incident

    def log(self, name: str) -> str:
        """Returns the lines of the stored file whose name ends so, of the newest incident."""
        incident = self.incidents()[0]
        file = next(file["name"] for file in incident["log"]["files"] if file["name"].endswith(name))
        with urllib.request.urlopen(
            f"{self.url}/api/v1/incidents/{incident['id']}/log?lines=2000&file={file}"
        ) as answer:
            return "".join(line["text"] + "\n" for line in json.load(answer)["lines"])

    def bundles(self) -> list[Path]:
        return sorted(self.spool.glob("*.bundle"))

    def captures(self) -> list[Path]:
        return sorted(self.scratch.glob("run-*"))


@contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Lets nothing of a test live on."""
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
