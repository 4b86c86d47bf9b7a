"""Runs `torchtriage triage` on the logs that are most expensive for it: `python bench/worst_cases.py [--part 0.1] [NAME…]`.

Prints one row per log: seconds, peak memory, outcome, and the limits that were reached according to `warnings`. The logs
are created while they are read and never stored. `--part` makes all of them smaller by that factor.
"""

from __future__ import annotations

import argparse
import json
import string
import tarfile
from collections.abc import Callable, Iterator
from itertools import islice, product

from bench.measuring import TRIAGE, run

HEAD = "Traceback (most recent call last):\n"
FRAME = '  File "/job/train.py", line 7, in main\n    step()\n'


def words() -> Iterator[str]:
    """Yields words that differ in letters, because numbers are masked."""
    return ("".join(letters) for letters in product(string.ascii_lowercase, repeat=5))


def million_tracebacks(part: float) -> Iterator[str]:
    for word in islice(words(), int(1_000_000 * part)):
        yield f"{HEAD}{FRAME}WidgetError: spindle {word} is stuck\n"


def equal_tracebacks(part: float) -> Iterator[str]:
    for number in range(int(1_000_000 * part)):
        yield f"{HEAD}{FRAME}WidgetError: spindle {number} is stuck\n"


def one_line(part: float) -> Iterator[str]:
    for _ in range(int(1000 * part)):
        yield "loss 0.1 Error: x " * 55_555


def only_error(part: float) -> Iterator[str]:
    for _ in range(int(1000 * part)):
        yield "Error\n" * 16_666


def only_named_errors(part: float) -> Iterator[str]:
    for _ in range(int(1000 * part)):
        yield "".join(f"ValueError: {number}\n" for number in range(6666))


def ranks(part: float) -> Iterator[str]:
    for rank in range(int(10_000 * part)):
        label = f"[rank{rank}]: "
        frames = "".join(f"{label}{line}\n" for line in (HEAD + FRAME * 20).splitlines())
        yield (
            f"{label}[E501 09:20:00.1 ProcessGroupNCCL.cpp:683] [Rank {rank}] Watchdog caught collective operation timeout: "
            f"WorkNCCL(SeqNum=78, OpType=ALLREDUCE, NumelIn=80, NumelOut=80, Timeout(ms)=600000) ran for 600{rank % 1000:03d} milliseconds\n"
            f"{frames}{label}torch.distributed.DistBackendError: NCCL watchdog thread terminated\n"
        )


def mixed_ranks(part: float) -> Iterator[str]:
    lines = [*(HEAD + FRAME * 20).splitlines(), "torch.distributed.DistBackendError: NCCL watchdog thread terminated"]
    for first in range(0, int(10_000 * part), 100):
        for line in lines:
            yield "".join(f"[rank{rank}]: {line}\n" for rank in range(first, first + 100))


def tree(part: float) -> Iterator[str]:
    """Yields a tar of torchrun's files of each rank: two files per rank; one rank fails and the others wait."""
    for rank in range(int(10_000 * part)):
        steps = "".join(
            f"2026-05-01 09:{step // 60:02d}:{step % 60:02d},100 INFO train.py:88 step {step} loss {3 - step / 999:.4f}\n"
            for step in range(300)
        )
        waits = f"[rank{rank}]:[E501 09:20:00.1 ProcessGroupNCCL.cpp:683] [Rank {rank}] Watchdog caught collective operation timeout: "
        waits += "WorkNCCL(SeqNum=78, OpType=ALLREDUCE, NumelIn=80, NumelOut=80, Timeout(ms)=600000) ran for 600001 milliseconds\n"
        fails = f"{HEAD}{FRAME}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
        yield _member(f"none_x/attempt_0/{rank}/stdout.log", steps)
        yield _member(f"none_x/attempt_0/{rank}/stderr.log", fails if rank == int(4321 * part) else waits)
    yield "\0" * 1024


def _member(name: str, text: str) -> str:
    info = tarfile.TarInfo(name)
    info.size = len(text)
    return info.tobuf().decode() + text + "\0" * (-len(text) % 512)


def attempts(part: float) -> Iterator[str]:
    for attempt in range(int(500 * part)):
        yield "".join(
            f"[rank {rank}] step {attempt * 100 + step} loss 0.5\n" for step in range(100) for rank in range(8)
        )
        yield (
            f"{HEAD}{FRAME}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 2 has a total capacity of 79 GiB\n"
            "E0501 09:10:00.200000 41 torch/distributed/elastic/multiprocessing/api.py:1002] "
            f"failed (exitcode: 1) local_rank: 2 (pid: {1000 + attempt}) of binary: /usr/bin/python3\n"
        )


def deep(part: float) -> Iterator[str]:
    yield HEAD
    for _ in range(int(1000 * part)):
        yield FRAME * 1000
    yield "RecursionError: maximum recursion depth exceeded\n"


def writers(part: float) -> Iterator[str]:
    for number in range(int(1_000_000 * part)):
        yield f"(Worker pid={number}, ip=10.0.0.1) {HEAD}"


def in_quotes(part: float) -> Iterator[str]:
    yield '"' + json.dumps(f"{HEAD}{FRAME}KeyError: 'image'\n" * 4)[1:-1]
    for number in range(int(19_000 * part)):
        yield json.dumps("".join(f"{HEAD}{FRAME}ValueError: {number} is no rank\n" for _ in range(8)))[1:-1]
    yield '"'


def in_a_document(part: float) -> Iterator[str]:
    yield '{"events": ['
    for step in range(int(180_000 * part)):
        yield (
            json.dumps(
                {
                    "timestamp": f"2026-05-01T09:{step // 3600 % 60:02}:{step // 60 % 60:02}Z",
                    "message": f"step {step} loss 0.5 of the run",
                }
            )
            + ", "
        )
    yield (
        ", ".join(
            json.dumps({"timestamp": "2026-05-01T10:00:00Z", "message": line})
            for line in f"{HEAD}{FRAME}KeyError: 'image'".split("\n")
        )
        + "]}"
    )


def in_a_notebook(part: float) -> Iterator[str]:
    yield '{\n "cells": [{"cell_type": "code", "outputs": [{"output_type": "stream", "text": [\n'
    for step in range(int(400_000 * part)):
        yield json.dumps(f"step {step} loss 0.5 of the run\n") + ",\n"
    yield json.dumps(f"{HEAD}{FRAME}KeyError: 'image'") + "]}]}]}\n"


def cut_at_a_width(part: float) -> Iterator[str]:
    for step in range(int(100_000 * part)):
        line = f"[rank {step % 8}] step {step} of the run goes on with loss 0.5 and a learning rate of 3.0e-04, tokens {step * 977}"
        yield f"{line[:80]}\n{line[80:]}\n"


CASES: dict[str, Callable[[float], Iterator[str]]] = {
    "a million different tracebacks": million_tracebacks,
    "a million equal tracebacks": equal_tracebacks,
    "1 GB in a single line": one_line,
    "100 MB of nothing but Error": only_error,
    "100 MB of ValueError: number": only_named_errors,
    "10,000 ranks": ranks,
    "10,000 ranks, 100 at a time line by line": mixed_ranks,
    "10,000 ranks, two files each": tree,
    "500 attempts": attempts,
    "frames a million deep": deep,
    "a million writers that begin a traceback": writers,
    "20 MB quoted as one string": in_quotes,
    "19 MB of records in one document": in_a_document,
    "19 MB of lines in a notebook": in_a_notebook,
    "12 MB of lines cut at 80 columns": cut_at_a_width,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", type=float, default=1.0)
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of the names of cases; all without one")
    options = parser.parse_args()
    print("| log | s | peak MB | verdict | warnings |\n|---|---|---|---|---|")
    for name, make in CASES.items():
        if options.names and not any(wanted in name for wanted in options.names):
            continue
        done = run([*TRIAGE, "-"], (text.encode() for text in make(options.part)))
        verdict = json.loads(done.output or b"{}")
        root = verdict.get("root_cause") or {}
        told = f"{verdict.get('outcome', f'exit status {done.status}')} {root.get('entry') or ''}"
        print(
            f"| {name} | {done.seconds:.1f} | {done.peak / 1e6:.0f} | {told} | {'; '.join(verdict.get('warnings', []))} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
