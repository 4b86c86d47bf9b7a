"""SubprocessHook: the command in a session of its own, its output in one pipe, the variables that are given and no others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from typing import NamedTuple


class SubprocessResult(NamedTuple):
    exit_code: int
    output: str


class SubprocessHook:
    def __init__(self) -> None:
        self.sub_process: subprocess.Popen[bytes] | None = None

    def run_command(
        self,
        command: list[str],
        env: dict[str, str] | None = None,
        output_encoding: str = "utf-8",
        cwd: str | None = None,
    ) -> SubprocessResult:
        with tempfile.TemporaryDirectory(prefix="airflowtmp") as folder:
            self.sub_process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=cwd or folder,
                env=env or dict(os.environ),
                start_new_session=True,
            )
            output, _ = self.sub_process.communicate()
        lines = output.decode(output_encoding, "backslashreplace").splitlines()
        sys.stdout.write(output.decode(output_encoding, "backslashreplace"))
        return SubprocessResult(self.sub_process.returncode, lines[-1] if lines else "")

    def send_sigterm(self) -> None:
        if self.sub_process:
            os.killpg(os.getpgid(self.sub_process.pid), signal.SIGTERM)
