"""Makes real hangs into a folder outside the repository.

    python -m tests.corpus.hangs FOLDER --python VENV/bin/python [--count 228] [--seed 1] [--part 1/2] [--only WORDS]

The Python given must have torch, and py-spy beside it. Each hang gets a folder with `evidence/`, what was gathered, and
`case.json`. A run that did not hang is told, and no case. The same seed draws the same hangs; `--part` makes some of them,
and `--only` those whose name holds one of the words. `python -m bench.hangs FOLDER` scores them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.corpus.hangs.sampling import Draw, draws
from tests.corpus.make import free_port
from torchtriage.client import torchtriage_client as client

JOB = Path(__file__).parent / "job" / "train.py"
STARTS = 90.0  # seconds until every rank must have come to its first call
QUIET = 1.5  # seconds without a new call on any rank, after which the run hangs
DUMPS = 4.0  # seconds for the dumps
_DUMP_FILE = "TORCH_FR_DUMP_TEMP_FILE"
_SETTINGS = {"TORCH_FR_BUFFER_SIZE": "2000", "OMP_NUM_THREADS": "1"}


class NoHang(Exception):
    """The run ended, or never began."""


class Forks:
    """A process that has imported torch, and forks the ranks of a run."""

    def __init__(self, python: Path, folder: Path) -> None:
        environment = os.environ | _SETTINGS
        environment.pop("RANK", None)
        self._server = subprocess.Popen(
            [str(python), str(JOB)],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, plan: dict[str, Any]) -> list[int]:
        """-> the processes of the ranks."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(plan) + "\n")
        self._server.stdin.flush()
        return [int(process) for process in json.loads(self._server.stdout.readline())]

    def end(self) -> None:
        """Ends it; its ranks have ended."""
        self._server.kill()
        self._server.communicate()


@dataclass
class Running:
    """The processes of a run, and the folder in which its ranks write. `roots` are the processes that were started: the
    ranks themselves, or a launcher."""

    draw: Draw
    folder: Path
    began: float
    roots: list[int]

    def wait_for_hang(self) -> None:
        """Returns when no rank makes another call. Raises NoHang."""
        calls: list[int] = []
        since = time.monotonic()
        until = since + STARTS
        while time.monotonic() - since < QUIET:
            time.sleep(0.1)
            found = [_size(self.folder / f"progress_{rank}") for rank in range(self.draw.ranks)]
            if found != calls or not all(found):
                calls, since = found, time.monotonic()
            if time.monotonic() > until or not any(map(_lives, self.roots)):
                log = (self.folder / "train.log").read_text(errors="replace")
                raise NoHang(f"{self.draw.name}: ended, or never began: {log[-300:]!r}")
        if len(list(self.folder.glob("ended_*"))) == self.draw.ranks:
            raise NoHang(f"{self.draw.name}: ended well")

    def ask_for_dumps(self) -> None:
        """Returns when those that can have written their dumps."""
        (self.folder / "gather").touch()
        until = time.monotonic() + DUMPS
        written = -1
        while time.monotonic() < until:
            now = len(list(self.folder.glob("dumped_*")))
            if now == self.draw.ranks:
                return
            if now != written:
                written, until = now, time.monotonic() + DUMPS
            time.sleep(0.05)

    def gather(self, folder: Path) -> None:
        """Puts what shows why it hangs into `folder`: where a launcher started the ranks, what the client gathers."""
        if self.draw.launcher == "fork":
            self._gather_forks(folder)
            return
        for root in self.roots:
            for member in client.gather(root, str(self.folder / "watch" / "stacks"), self.began).files:
                _write(folder / member.name, client.Pieces(member.pieces).readall())

    def _gather_forks(self, folder: Path) -> None:
        for rank, process in enumerate(self.roots):
            if "py-spy" in self.draw.evidence and _lives(process):
                done = subprocess.run(
                    ["py-spy", "dump", "--pid", str(process)], capture_output=True, timeout=20, check=False
                )
                if done.stdout:
                    _write(folder / "stacks" / f"rank_{rank}.txt", done.stdout)
            elif "faulthandler" in self.draw.evidence and _lives(process):
                os.kill(process, signal.SIGUSR1)
        if "faulthandler" in self.draw.evidence:
            time.sleep(QUIET)  # a process that stands still in C, or is stopped, writes none
        for path in self.folder.glob("stack_*.txt"):
            if path.stat().st_size:
                _write(folder / "stacks" / path.name.replace("stack", "rank"), path.read_bytes())
        for path in self.folder.glob("comm_lib_trace_rank_*"):
            _write(folder / "dumps" / path.name, path.read_bytes())

    def dead(self) -> list[int]:
        """-> the ranks whose process has ended, as far as they were started one by one."""
        return [rank for rank, root in enumerate(self.roots) if len(self.roots) == self.draw.ranks and not _lives(root)]

    def end(self) -> None:
        """Kills every process of the run."""
        for root in self.roots:
            for process in client.tree_of(root):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)


def start(draw: Draw, python: Path, folder: Path, forks: Forks) -> Running:
    """Starts the ranks of a run."""
    os.environ[_DUMP_FILE] = str(folder / "comm_lib_trace_rank_")
    own = {_DUMP_FILE: os.environ[_DUMP_FILE], "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    plan = asdict(draw) | {"folder": str(folder), "environment": own}
    began = time.time()
    (folder / "train.log").touch()
    if draw.launcher == "fork":
        return Running(draw, folder, began, forks.start(plan))
    environment = os.environ | _SETTINGS | own | {"HANG": json.dumps(plan)}
    (folder / "watch").mkdir()
    if "faulthandler" in draw.evidence:
        environment = client.hooked(str(folder / "watch"), environment)
    program = [str(JOB)]
    commands: list[tuple[list[str], dict[str, str]]]
    if draw.launcher == "torchrun":
        options = ["--standalone", "--nproc-per-node", str(draw.ranks)]
        commands = [([str(python), "-m", "torch.distributed.run", *options, *program], {})]
    else:
        ranks = ({"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(draw.ranks))
        commands = [([str(python), *program], {**rank, "WORLD_SIZE": str(draw.ranks)}) for rank in ranks]
    with open(folder / "train.log", "wb") as log:
        children = [
            subprocess.Popen(
                command, cwd=folder, env=environment | extra, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True,
            )
            for command, extra in commands
        ]  # fmt: skip
    return Running(draw, folder, began, [child.pid for child in children])


def make(draw: Draw, python: Path, case: Path, forks: Forks) -> None:
    """Runs one hang; `case` holds what was gathered and its label afterwards. Raises NoHang."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        running = start(draw, python, folder, forks)
        path = os.environ["PATH"]
        try:
            running.wait_for_hang()
            if "dumps" in draw.evidence:
                running.ask_for_dumps()
            os.environ["PATH"] = f"{python.parent}:{path}" if "py-spy" in draw.evidence else "/usr/bin:/bin"
            shutil.rmtree(case, ignore_errors=True)
            running.gather(case / "evidence")
            dead = running.dead()
            _write(case / "evidence" / "train.log", (folder / "train.log").read_bytes())
        finally:
            os.environ["PATH"] = path
            running.end()
        if draw.evidence == "dumps alone":
            shutil.rmtree(case / "evidence" / "stacks", ignore_errors=True)
        _write(
            case / "case.json",
            json.dumps(asdict(draw) | {"dead": dead, "told": draw.told(dead)}, indent=1).encode() + b"\n",
        )


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _lives(process: int) -> bool:
    """-> whether a process is there, and no zombie."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    parser.add_argument("--count", type=int, default=228)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--only", nargs="*", default=())
    options = parser.parse_args()
    part, of = map(int, options.part.split("/"))
    chosen = draws(options.count, options.seed)[part - 1 :: of]
    options.folder.mkdir(parents=True, exist_ok=True)
    forks = Forks(options.python.absolute(), options.folder)
    for draw in (one for one in chosen if not options.only or any(word in one.name for word in options.only)):
        began = time.monotonic()
        try:
            make(draw, options.python.absolute(), options.folder / draw.name, forks)
            told = f"{draw.name}: {draw.ranks} ranks, {draw.launcher}, {time.monotonic() - began:.0f} s"
        except NoHang as reason:
            told = f"no hang: {reason}"
        sys.stdout.write(told + "\n")
        sys.stdout.flush()
    forks.end()


if __name__ == "__main__":
    main()
