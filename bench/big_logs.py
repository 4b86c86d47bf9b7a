"""Times `torchtriage triage` on big logs made from a seed: `python bench/big_logs.py [--rounds 5] [--megabytes 1000]`.

Prints one row a log and program: median seconds of the whole process, bytes a second, peak memory. `wc -l` on
the same file in the same run stands beside it, so that a slow machine shows.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

TRIAGE = [str(Path(sys.executable).with_name("torchtriage")), "triage", "--json"]
FRAMES = "".join(
    f'[rank{{rank}}]:   File "/env/lib/python3.11/site-packages/torch/part{number}.py", line {100 + number}, in call_{number}\n'
    f"[rank{{rank}}]:     return self._call_impl(*args, **kwargs)\n"
    for number in range(60)
)


def healthy(size: int) -> Iterator[str]:
    """Yields progress lines of eight ranks, `size` bytes in all."""
    dice = random.Random(1)
    block = "".join(
        f"[2026-05-01 09:{step // 600 % 60:02d}:{step // 10 % 60:02d},{step % 1000:03d}] [INFO] [rank {step % 8}] step {step} | "
        f"loss {dice.random() * 3:.4f} | lr 3.0e-04 | grad norm {dice.random():.3f} | tokens/s {dice.randint(9000, 12000)}\n"
        for step in range(20_000)
    )
    for _ in range(size // len(block) + 1):
        yield block


def noisy(size: int) -> Iterator[str]:
    """Yields the same with a survived error every 1,000 lines."""
    for block in healthy(size):
        lines = block.splitlines(keepends=True)
        for start in range(0, len(lines), 1000):
            yield "".join(lines[start : start + 1000]) + "ConnectionError: the tracker did not answer, trying again\n"


def failed(size: int) -> Iterator[str]:
    """Yields a run of 512 ranks: one runs out of memory, all others wait in a collective and say so with tracebacks."""
    yield (
        '[rank170]: Traceback (most recent call last):\n[rank170]:   File "/job/model.py", line 44, in forward\n'
        "[rank170]:     x = self.attention(x)\n"
        "[rank170]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 2 has a total capacity of 79 GiB\n"
    )
    written = 0
    while written < size:
        for rank in range(512):
            part = (
                f"[rank{rank}]:[E501 09:20:00.000001 ProcessGroupNCCL.cpp:683] [Rank {rank}] Watchdog caught collective operation "
                f"timeout: WorkNCCL(SeqNum=1203, OpType=ALLREDUCE, NumelIn=255, NumelOut=255, Timeout(ms)=600000) ran for 600029 ms\n"
                f"[rank{rank}]: Traceback (most recent call last):\n{FRAMES.format(rank=rank)}"
                f"[rank{rank}]: torch.distributed.DistBackendError: NCCL watchdog thread terminated with exception\n"
            )
            yield part
            written += len(part)


def measure(command: list[str], rounds: int) -> tuple[float, int]:
    """-> median wall seconds and peak memory in bytes of a command run `rounds` times after one warm-up."""
    seconds, peak = [], 0
    for turn in range(rounds + 1):
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, _, usage = os.wait4(process.pid, 0)
        if turn:
            seconds.append(time.perf_counter() - began)
        peak = max(peak, usage.ru_maxrss * 1024)
    return statistics.median(seconds), peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=1000)
    options = parser.parse_args()
    size = options.megabytes * 1_000_000
    logs: list[tuple[str, Callable[[int], Iterator[str]], int]] = [
        ("healthy", healthy, size),
        ("an error line every 1,000", noisy, size),
        ("512 ranks, 511 waiting", failed, size // 10),
    ]
    print("| log | program | MB | median s | MB/s | peak MB |\n|---|---|---|---|---|---|")
    for name, make, wanted in logs:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.log"
            with path.open("w") as file:
                file.writelines(make(wanted))
            megabytes = path.stat().st_size / 1e6
            for command in (TRIAGE, ["wc", "-l"]):
                seconds, peak = measure([*command, str(path)], options.rounds)
                program = "torchtriage triage" if command is TRIAGE else " ".join(command)
                print(
                    f"| {name} | {program} | {megabytes:.0f} | {seconds:.2f} | {megabytes / seconds:.0f} | {peak / 1e6:.0f} |"
                )


if __name__ == "__main__":
    main()
