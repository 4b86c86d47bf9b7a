"""Fuzzes every route of a service with requests that its OpenAPI document allows and forbids (schemathesis).

`python -m bench.api_fuzz [--examples 200] [--url http://127.0.0.1:8000]`. Without --url, starts its own service. The
exit status is 1 if a response is a 5xx, or its status, type or form is not documented.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.kill9 import Part, answers, free_port

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


def ask_everything(url: str, examples: int, seconds: int, phases: str, folder: Path) -> tuple[int, str]:
    """Returns exit status and report of a run with a fixed seed. `folder` gets its output files."""
    command = [str(Path(sys.executable).with_name("st")), "--config-file", str(_configuration(folder))]
    command += ["run", f"{url}/openapi.json", "--checks", CHECKS, "--phases", phases, "--max-examples", str(examples)]
    command += ["--max-time", str(seconds), "--generation-deterministic", "--continue-on-failure", "--no-color"]
    command += ["--warnings", "off", "--request-timeout", "60", "--suppress-health-check", "all"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def _configuration(folder: Path) -> Path:
    """Turns off waiting for verdicts, which is not tested here."""
    path = folder / "schemathesis.toml"
    path.write_text('[[operations]]\ninclude-path = "/api/v1/incidents"\nparameters = { wait = 0 }\n')
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--url", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        part = Part(["serve", "--port", str(port)], {"TRIAGE_DATA_DIR": folder, "TRIAGE_LOG_LEVEL": "error"})
        if not options.url:
            part.start()
            answers(port)
        url = options.url or f"http://127.0.0.1:{port}"
        try:
            phases = "examples,coverage,fuzzing,stateful"
            status, report = ask_everything(url, options.examples, options.seconds, phases, Path(folder))
        finally:
            if not options.url:
                part.stop()
    print(report)
    raise SystemExit(status)


if __name__ == "__main__":
    main()
