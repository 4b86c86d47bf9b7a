"""Makes the corpus anew: scenarios in, a folder with log.txt (or log/) and case.json for each case out.

    python -m tests.corpus.make [CASE...] --python VENVS/*/bin/python

Each Python given must have torch (on the CPU); the one with torch 2.13 also has, for some cases, rich, loguru, tqdm,
pillow, omegaconf, transformers, accelerate and lightning. A case is made by the version of torch that it names, and
skipped where none of the Pythons has it (1.7: Python 3.8; 1.9: 3.9; 1.12 and 2.1: 3.10). Each case runs by itself in a
folder of its own; paths of this machine are replaced in its log.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.corpus.cases import SUCCESS, Case, Kill
from tests.corpus.recorder import Recorder
from tests.corpus.table import CASES
from tests.corpus.table_older import OLDER_CASES

HERE = Path(__file__).resolve().parent
SCENARIOS = HERE / "scenarios"


class Failed(Exception):
    """A scenario did not do what its label says."""


def free_port() -> int:
    """-> a TCP port that nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def run_case(case: Case, python: Path, job: Path) -> bytes:
    """Runs the scenario in the folder `job`; -> its log, with this machine's paths."""
    shutil.copy(SCENARIOS / "trainer.py", job)
    shutil.copy(SCENARIOS / case.script, job / case.run_as)
    for name in case.extra:
        shutil.copy(SCENARIOS / name, job)
    recorder, codes = Recorder(case.form), [0]
    for run in case.runs:
        words = {"bin": str(python.parent), "port": str(free_port())}
        children = []
        for proc in run:
            time.sleep(proc.delay)
            env = environment(python) | {key: value.format(**words) for key, value in proc.env.items()}
            children.append(start(proc.command.format(**words), env, job, apart=case.form == "docker"))
            recorder.follow(children[-1], proc.label)
        try:
            if case.kill is not None:
                recorder.wait_for(case.kill.when, case.seconds)
                send(case.kill, job, children[0].pid)
            recorder.finish(case.seconds)
            codes = [child.wait(20) for child in children]
        finally:
            stop(children)
    if case.cause == SUCCESS and any(codes):
        raise Failed(f"a run that should end well ended with {codes}")
    return recorder.text()


def environment(python: Path) -> dict[str, str]:
    """-> what a job's shell would have set."""
    kept = {key: os.environ[key] for key in ("HOME", "LANG", "USER") if key in os.environ}
    paths = f"{python.parent}:/usr/local/bin:/usr/bin:/bin"
    quiet = {"GLOO_SOCKET_IFNAME": "lo", "HF_HUB_OFFLINE": "1", "NO_COLOR": "1", "COLUMNS": "120"}
    return kept | quiet | {"PATH": paths, "PYTHONUNBUFFERED": "1", "TERM": "dumb"}


def start(command: str, env: dict[str, str], job: Path, apart: bool) -> subprocess.Popen[bytes]:
    """-> the started command, at the head of a group of processes of its own; its two outputs in one unless `apart`."""
    pipe = subprocess.PIPE
    errors = pipe if apart else subprocess.STDOUT
    return subprocess.Popen(shlex.split(command), cwd=job, env=env, stdout=pipe, stderr=errors, start_new_session=True)


def send(kill: Kill, job: Path, launcher: int) -> None:
    """Sends the signal from outside."""
    number = signal.Signals[kill.signal]
    if kill.whom == "group":
        os.killpg(launcher, number)
    elif kill.whom == "launcher":
        os.kill(launcher, number)
    else:
        os.kill(int((job / ".pids" / kill.whom.split()[1]).read_text()), number)


def stop(children: list[subprocess.Popen[bytes]]) -> None:
    """Ends what a run has left behind."""
    for child in children:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    for child in children:
        child.wait()


def neutral(log: bytes, python: Path, job: Path) -> bytes:
    """-> the log with /job, /opt/venv, /usr and node-a for the places and the name of this machine, and without the
    address of the package index, which one library's advice names."""
    base = subprocess.run(
        [python, "-c", "import sys; print(sys.base_prefix)"], capture_output=True, text=True, check=True
    )
    places = {str(job): "/job", str(python.parent.parent): "/opt/venv", base.stdout.strip(): "/usr"}
    places["https://pypi" + ".org/project/"] = "https://packages.example/"
    names = re.compile(rb"(host\s*: |master_addr=|Socket on |\()" + re.escape(socket.gethostname().encode()) + rb"\b")
    lines = []
    for line in log.split(b"\n"):
        clean = names.sub(rb"\1node-a", line)
        for old, new in places.items():
            clean = clean.replace(old.encode(), new.encode())
        edge = "│".encode()
        if clean.rstrip().endswith(edge):  # A box of rich stays a box.
            clean = clean.rstrip()[: -len(edge)] + b" " * (len(line) - len(clean)) + edge
        lines.append(clean)
    return b"\n".join(lines)


def evidence(case: Case, log: str) -> str | None:
    """-> the line that names the cause, from the label's words to its end; raises Failed where it is not there."""
    if case.cause == SUCCESS or not case.evidence:
        return None
    for line in log.replace("\r", "\n").splitlines():
        if case.evidence in line:
            rest = line[line.index(case.evidence) :]
            return re.sub(r'\\n","stream":.*$|\s*│?\s*$', "", rest)
    raise Failed(f"{case.evidence!r} is not in the log")


def label(case: Case, log: str, version: str) -> dict[str, Any]:
    """-> what case.json holds."""
    return {
        "source": "made by a real run of a scenario of this project on CPU",
        "kind": "full",
        "root_cause": case.cause,
        "also_ok": list(case.also),
        "cascades": list(case.cascades),
        "first_failing_rank": case.rank,
        "rank_told": case.rank_told,
        "exit_code": case.exit_code,
        "signal": case.signal,
        "host": None,
        "torch_version": version,
        "evidence": evidence(case, log),
        "notes": case.notes,
    }


def make(case: Case, python: Path, version: str) -> None:
    """Runs the case and writes its folder."""
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder).resolve() / "work"
        job.mkdir()
        Path(folder).chmod(0o755)
        log = neutral(run_case(case, python, job), python, job)
        files = {"log.txt": log}
        if case.tree:
            ranks = {f"log/{p.relative_to(job / 'logs')}": p for p in (job / "logs").rglob("*") if p.is_file()}
            files = {name: neutral(path.read_bytes(), python, job) for name, path in ranks.items()}
            files["log/launcher.log"] = log
    meta = label(case, b"\n".join(files.values()).decode("utf-8", "replace"), version)
    shutil.rmtree(HERE / case.name, ignore_errors=True)
    for name, content in files.items():
        (HERE / case.name / name).parent.mkdir(parents=True, exist_ok=True)
        (HERE / case.name / name).write_bytes(content)
    text = json.dumps(meta, indent=1, ensure_ascii=False)
    (HERE / case.name / "case.json").write_text(f"{text}\n", encoding="utf-8")


def torch_of(python: Path) -> str:
    """-> the version of torch that a Python has."""
    ask = [str(python), "-c", "import torch; print(torch.__version__)"]
    return str(subprocess.run(ask, capture_output=True, text=True, check=True).stdout).strip()


def main() -> int:
    """Makes the named cases, or all; -> 1 where one of them did not do what its label says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = [Path(sys.executable)]
    parser.add_argument("--python", type=Path, nargs="+", default=here, help="Pythons that have torch, of any version")
    parser.add_argument("case", nargs="*")
    args = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGHUP):  # What a shell ignores in the background would be ignored below too.
        signal.signal(number, signal.default_int_handler)
    versions = {torch_of(python): python.absolute() for python in args.python}
    bad = 0
    for case in (*CASES, *OLDER_CASES):
        if args.case and case.name not in args.case:
            continue
        began = time.monotonic()
        version = next((known for known in versions if known.startswith(f"{case.torch}.")), None)
        if version is None:
            sys.stdout.write(f"{case.name:28} skipped: no Python with torch {case.torch} was given\n")
            continue
        try:
            make(case, versions[version], version)
            outcome = "made"
        except (Failed, OSError, TimeoutError) as error:
            bad += 1
            outcome = f"FAILED: {error}"
        sys.stdout.write(f"{case.name:28} {time.monotonic() - began:5.1f} s  {outcome}\n")
        sys.stdout.flush()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
