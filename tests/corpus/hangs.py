"""Makes real hangs: processes with Gloo on this machine, out come the flight recorder's dumps and stacks of each rank.

    python -m tests.corpus.hangs FOLDER --python VENV/bin/python [--ranks N] [--kinds KIND...]

FOLDER/KIND-N then holds `dump_RANK` (pickle), `stack_RANK.txt` (faulthandler) and `case.json` with the ranks at fault.
A killed or stopped rank leaves no dump.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

KINDS = (
    "skip", "order", "shape", "dtype", "other-group", "killed", "stopped", "slow-loader", "lock", "slow-save",
    "uneven", "evaluates", "barrier",
)  # fmt: skip
_JOB = """
import faulthandler, json, os, signal, sys, threading, time
import torch
import torch.distributed as dist

kind, bad, step_at, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo")
pairs = [dist.new_group(list(range(at, min(at + 2, world))), group_desc="pair") for at in range(0, world, 2)]
everyone = dist.new_group(list(range(world)), group_desc="data_parallel")
faulty = rank == bad


def write_dump():
    time.sleep(6)
    trace = torch._C._distributed_c10d._dump_fr_trace()
    with open(f"{folder}/dump_{rank}", "wb") as file:
        file.write(trace)
    with open(f"{folder}/stack_{rank}.txt", "w") as file:
        faulthandler.dump_traceback(file)
    time.sleep(4)
    os._exit(0)


def load_batch():
    if kind == "slow-loader" and faulty and step == step_at:
        time.sleep(60)
    return torch.ones(8)


def save_checkpoint():
    with open("/dev/null", "wb") as file:
        torch.save({"step": step}, file)
        time.sleep(60)


def evaluate():
    for _ in range(10000):
        time.sleep(0.01)


threading.Thread(target=write_dump, daemon=True).start()
held = threading.Lock()
sys.excepthook = lambda *_: time.sleep(60)  # a peer that is gone raises here; the dump is still written
for step in range(10):
    x = load_batch()
    at = faulty and step == step_at
    if at and kind == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if at and kind == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    if at and kind == "lock":
        held.acquire()
        held.acquire()
    if at and kind == "slow-save":
        save_checkpoint()
    if at and kind == "evaluates":
        evaluate()
    if at and kind == "uneven":
        break
    if at and kind == "other-group":
        dist.all_reduce(x, group=pairs[rank // 2])
    if at and kind == "order":
        dist.broadcast(x, 0, group=everyone)
        dist.all_reduce(x, group=everyone)
    else:
        if not (at and kind == "skip"):
            dist.all_reduce(torch.ones(16) if at and kind == "shape" else x.double() if at and kind == "dtype" else x, group=everyone)
        dist.broadcast(x, 0, group=everyone)
    if step % 3 == 0:
        dist.all_reduce(x, group=pairs[rank // 2])
    if kind == "barrier" and step == step_at and not faulty:
        dist.barrier()
    if at and kind == "barrier":
        time.sleep(60)
time.sleep(60)
"""


def make(kind: str, ranks: int, seed: int, python: Path, folder: Path) -> None:
    """Runs one hang; its dumps, stacks and `case.json` lie in `folder` afterwards."""
    chance = random.Random(f"{kind}{ranks}{seed}")
    bad = chance.randrange(ranks)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "job.py").write_text(_JOB)
    command = [str(python), "job.py", kind, str(bad), str(chance.randrange(1, 6)), str(folder)]
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    # No agent, which would end the others with the first that dies.
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks), "OMP_NUM_THREADS": "1",
              "TORCH_FR_BUFFER_SIZE": "2000", "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000"}  # fmt: skip
    jobs = [
        subprocess.Popen(
            command, cwd=folder, env=os.environ | common | {"RANK": str(rank)},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        for rank in range(ranks)
    ]  # fmt: skip
    end = time.monotonic() + 60
    for job in jobs:
        try:
            job.wait(max(0.1, end - time.monotonic()) if job is not jobs[bad] else 40)
        except subprocess.TimeoutExpired:
            job.kill()
    (folder / "case.json").write_text(json.dumps({"kind": kind, "suspects": [bad], "world_size": ranks}))
    (folder / "job.py").unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=KINDS)
    parser.add_argument("--python", type=Path, default=Path(sys.executable))
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for kind in options.kinds:
        make(
            kind,
            options.ranks,
            options.seed,
            options.python,
            options.folder.resolve() / f"{kind}-{options.ranks}-{options.seed}",
        )


if __name__ == "__main__":
    main()
