"""Makes labelled logs of real failures into a folder outside the repository.

    python -m tests.corpus.kit FOLDER --python VENVS/*/bin/python [--count 160] [--seed 1] [--only WORDS] [--part 1/2]

Each Python given must have torch and numpy; those that have accelerate or ray too are taken for these launchers. mpirun
and a Slurm that tests/slurm can start are taken where they are installed, and faults that need them skipped elsewhere.
FOLDER/open holds two thirds of the faults, FOLDER/held-back the rest, to which nobody tunes the knowledge. Each case is
a folder with log.txt (or log/) and case.json. A log that does not show what its label says goes to FOLDER/failed. The same seed draws the same cases; `--only` makes those of the drawn
cases whose name holds one of the words.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
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

from tests.corpus.cases import Proc
from tests.corpus.kit.launch_faults import LaunchFault
from tests.corpus.kit.launchers import LAUNCHERS
from tests.corpus.kit.sampling import Draw, JobFault, draws, held_back
from tests.corpus.make import Failed, environment, free_port, neutral, send, start, stop, torch_of
from tests.corpus.recorder import Recorder
from tests.log_wrappings import WRAPPINGS
from tests.slurm.cluster import Cluster, missing

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SECONDS = 150.0  # that a case may take
PEERS_SAY = ("Connection closed by peer", "Connection reset by peer", "Timed out waiting")


def listed(python: Path) -> list[JobFault]:
    """-> the faults of a job, as its program lists them."""
    with tempfile.TemporaryDirectory() as folder:
        job = _job(Path(folder))
        done = subprocess.run([python, "train.py", "--labels"], cwd=job, capture_output=True, text=True, check=True)
    return [JobFault.of(each) for each in json.loads(done.stdout)]


def _job(folder: Path) -> Path:
    """-> a new job's folder, with its program."""
    job = folder.resolve() / "work"
    shutil.copytree(HERE / "job", job, ignore=shutil.ignore_patterns("__pycache__", "ruff.toml"))
    shutil.copy(HERE.parent / "scenarios" / "trainer.py", job)
    folder.chmod(0o755)
    return job


def _beside(python: Path) -> set[str]:
    """-> which of the packages that launchers need a Python has."""
    ask = "import importlib.util as u; print(*[n for n in ('accelerate', 'ray', 'pandas') if u.find_spec(n)])"
    found = set(subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.split())
    return found if "pandas" in found else found - {"ray"}


class Slurm:
    """A real Slurm, started with the first job that wants it."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self._cluster: Cluster | None = None
        self.missing = missing()

    def cluster(self) -> Cluster:
        """-> the running cluster."""
        if self._cluster is None:
            installed = Path(self._stack.enter_context(tempfile.TemporaryDirectory())) / "installed"
            shutil.copytree(ROOT / "deploy" / "slurm", installed)
            self._cluster = self._stack.enter_context(Cluster(installed, "http://127.0.0.1:9"))
        return self._cluster

    def run(self, lines: list[str], env: dict[str, str], job: Path, then: str) -> bytes:
        """Runs a batch script with these lines; `then`: "cancel" and "time" end it in the fifth step,
        "outside" runs them in no job. -> its output."""
        cluster = self.cluster()
        if then == "outside":
            return "".join(cluster.run(*shlex.split(line)) for line in lines).encode()
        exports = [f"export {key}='{value}'" for key, value in env.items() if key != "PATH"]
        script = "\n".join(["#!/bin/bash", f"export PATH={env['PATH']}", *exports, *lines, ""])
        number = cluster.submit(
            script,
            f"--chdir={job}",
            f"--output={job}/slurm.out",
            "--overcommit",
            "--ntasks=4",
            "--nodes=1",
            "--time=10",
        )
        if then in ("cancel", "time"):
            output = job / "slurm.out"
            cluster.until(
                lambda: output.exists() and "step 4/" in output.read_text(errors="replace"), "no fifth step", SECONDS
            )
            if then == "cancel":
                cluster.run("scancel", number)
            else:
                cluster.end_at_its_time_limit(number)
        cluster.ended(number)
        time.sleep(1)  # slurmstepd writes its last words behind the job's state.
        return (job / "slurm.out").read_bytes()


def made(draw: Draw, python: Path, job: Path, slurm: Slurm) -> dict[str, bytes]:
    """Runs the case in the folder `job`; -> its files by name, without their wrapping, with this machine's paths."""
    fault, launcher = draw.fault, LAUNCHERS.get(draw.launcher)
    words = {"bin": str(python.parent), "port": str(free_port())}
    arguments = f"{'none' if draw.fault.name == 'well' else draw.fault.name} --victim {draw.victim}"
    run = launcher.run(arguments, draw.ranks) if launcher else (Proc(getattr(fault, "command", "")),)
    commands = [proc.command.format(**words) for proc in run]
    if isinstance(fault, JobFault) and fault.around:
        commands = [fault.around.replace("{}", command) for command in commands]
    then = fault.slurm if isinstance(fault, LaunchFault) else ""
    if then or (launcher and launcher.slurm):
        env = environment(python) | {key: value.format(**words) for key, value in run[0].env.items()}
        return {"log.txt": slurm.run(commands, env, job, then)} | _written(job, "slurm-*-*.out")
    with contextlib.ExitStack() as stack:
        if isinstance(fault, LaunchFault) and fault.port_taken:
            stack.enter_context(socket.create_server(("127.0.0.1", int(words["port"]))))
        log = _followed(draw, run, commands, words, python, job)
    return {"log.txt": log} | _written(job, "logs/**/*.log")


def _followed(
    draw: Draw, run: tuple[Proc, ...], commands: list[str], words: dict[str, str], python: Path, job: Path
) -> bytes:
    """Starts the commands side by side and follows them to their end; -> what they print."""
    recorder, children = Recorder(""), []
    try:
        for proc, command in zip(run, commands, strict=True):
            time.sleep(proc.delay)
            env = environment(python) | {key: value.format(**words) for key, value in proc.env.items()}
            children.append(start(command, env, job, apart=False))
            recorder.follow(children[-1], proc.label)
        kill = draw.fault.kill if isinstance(draw.fault, LaunchFault) else None
        if kill is not None:
            recorder.wait_for(kill.when, SECONDS)
            send(kill, job, children[0].pid)
        recorder.finish(SECONDS)
        codes = [child.wait(20) for child in children]
    finally:
        stop(children)
    if draw.fault.name == "well" and any(codes):
        raise Failed(f"a run that should end well ended with {codes}")
    return recorder.text()


def _written(job: Path, pattern: str) -> dict[str, bytes]:
    """-> the files that ranks wrote, by their names below log/."""
    return {f"log/{path.relative_to(job)}": path.read_bytes() for path in job.glob(pattern) if path.is_file()}


def label(draw: Draw, text: str) -> dict[str, Any]:
    """-> what case.json holds: what the fault does, as far as the log can tell it; raises Failed where it does not."""
    fault = draw.fault
    causes, said = fault.causes, next((words for words in fault.says if words in text), None)
    if said is None and fault.name != "well":
        # The rank ended without a word, and what started it has none for that: only its peers speak.
        silent = isinstance(fault, JobFault) and (
            fault.run == "faults_process" or "elastic.child-failed" in fault.causes
        )
        said = next((words for words in PEERS_SAY if words in text), None)
        if not silent or said is None:
            raise Failed(f"none of {fault.says} is in the log")
        causes = ("gloo.error", "gloo.timeout")
    line = next((line for line in text.replace("\r", "\n").splitlines() if said and said in line), "")
    return {
        "source": "made by a real run of the kit of this project on CPU",
        "kind": "full",
        "root_cause": causes[0],
        "also_ok": list(causes[1:]),
        "cascades": [],
        "first_failing_rank": _rank_told(draw, text) if causes is fault.causes else None,
        "exit_code": None,
        "signal": None,
        "host": None,
        "torch_version": draw.torch,
        "evidence": (line[line.index(said) :].rstrip() or None) if said else None,
        "retry": list(fault.retry),
        "notes": f"{fault.name} under {draw.launcher or 'its own command'}, {draw.form}, {draw.ranks} ranks, victim {draw.victim}",
    }


def _rank_told(draw: Draw, text: str) -> int | None:
    """-> the rank that failed, where one did alone and the log has a word for it."""
    fault, rank = draw.fault, draw.victim
    if not isinstance(fault, JobFault) or fault.ranks != "one":
        return None
    told = (
        rf"\[rank{rank}\]:",
        rf"^\[?(default)?{rank}\]?: ",
        rf"local_rank: {rank} ",
        rf"rank +: {rank} ",
        rf"task {rank}: ",
        rf"Process {rank} terminated",
        rf"process rank {rank} with",
        rf"\[1,{rank}\]<",
    )
    return rank if any(re.search(words, text, re.MULTILINE) for words in told) else None


def wrapped(files: dict[str, bytes], form: str) -> dict[str, bytes]:
    """-> the files in the form in which the log is handed over."""
    if len(files) > 1:
        return {"log/launcher.log" if name == "log.txt" else name: content for name, content in files.items()}
    log = files["log.txt"]
    if form == "gzip":
        return {"log/train.log.gz": gzip.compress(log, mtime=0)}
    if form == "as it is":
        return files
    lines = log.decode("utf-8", "replace").split("\n")
    return {"log.txt": WRAPPINGS[form](lines[:-1] if lines[-1] == "" else lines)[0]}


def make(draw: Draw, python: Path, folder: Path, slurm: Slurm) -> None:
    """Runs the case and writes its folder."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        job = _job(Path(scratch))
        (job / ".pids").mkdir()
        files = {name: _clean(content, python, job) for name, content in made(draw, python, job, slurm).items()}
    try:
        meta = label(draw, b"\n".join(files.values()).decode("utf-8", "replace"))
    except Failed:
        (folder / "failed").mkdir(parents=True, exist_ok=True)
        (folder / "failed" / f"{draw.name}.txt").write_bytes(b"\n".join(files.values()))
        raise
    case = folder / ("held-back" if held_back(draw.fault.name) else "open") / draw.name
    shutil.rmtree(case, ignore_errors=True)
    for name, content in wrapped(files, draw.form).items():
        (case / name).parent.mkdir(parents=True, exist_ok=True)
        (case / name).write_bytes(content)
    (case / "case.json").write_text(json.dumps(meta, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _clean(log: bytes, python: Path, job: Path) -> bytes:
    """-> the log without the places and the name of this machine."""
    host = re.escape(socket.gethostname().encode())
    return re.sub(rb"\b" + host + rb"\b", b"node-a", neutral(log, python, job))


def main() -> int:
    """Makes the drawn cases; -> 1 where one of them did not do what its label says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", type=Path, nargs="+", required=True)
    parser.add_argument("--count", type=int, default=160)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=[""])
    parser.add_argument(
        "--part", default="1/1", help="I/N: each N-th case from the I-th on, for several of these side by side"
    )
    args = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGHUP):  # What a shell ignores in the background would be ignored below too.
        signal.signal(number, signal.default_int_handler)
    pythons = {torch_of(python): python.absolute() for python in args.python}
    packages = {version: _beside(python) for version, python in pythons.items()}
    faults = listed(next(iter(pythons.values())))
    bad = 0
    with contextlib.ExitStack() as stack:
        slurm = Slurm(stack)
        first, step = map(int, args.part.split("/"))
        for draw in draws(faults, packages, args.count, args.seed)[first - 1 :: step]:
            if not any(word in draw.name for word in args.only):
                continue
            began = time.monotonic()
            outcome = _outcome(draw, pythons[draw.torch], args.folder, slurm)
            bad += outcome.startswith("FAILED")
            line = f"{draw.name:28} {draw.launcher:22} {draw.torch:12} {draw.form:30} {time.monotonic() - began:5.1f} s  {outcome}\n"
            sys.stdout.write(line)
            sys.stdout.flush()
    return 1 if bad else 0


def _outcome(draw: Draw, python: Path, folder: Path, slurm: Slurm) -> str:
    """-> what became of a draw, in words."""
    command = draw.fault.command if isinstance(draw.fault, LaunchFault) else ""
    wants_slurm = draw.launcher in LAUNCHERS and LAUNCHERS[draw.launcher].slurm
    if (wants_slurm or (isinstance(draw.fault, LaunchFault) and draw.fault.slurm)) and slurm.missing:
        return f"skipped: {slurm.missing}"
    if (draw.launcher.startswith("mpirun") or "mpirun" in command) and shutil.which("mpirun") is None:
        return "skipped: no mpirun here"
    try:
        make(draw, python, folder, slurm)
    except (Failed, OSError, TimeoutError, AssertionError) as error:
        return f"FAILED: {error}"
    return "made"


if __name__ == "__main__":
    sys.exit(main())
