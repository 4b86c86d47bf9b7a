"""Times `torchtriage triage` and other programs on logs made from a seed: `python -m bench.big_logs [--rounds 5]`.

The others are `rg -c` with the signs of the same knowledge base, `wc -l`, and Drain3 (`--drain3 PYTHON`, an interpreter
that has it). They take turns on the same log, so that a busy machine slows all alike; the ratio is what matters. Times
are medians of whole processes including their start, with compiled patterns in the cache. 10 GB come from a pipe and
are never stored.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from bench.measuring import TRIAGE, Measured, medians, run

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
    """Yields a run of 512 ranks: one runs out of memory; all others wait in a collective and print tracebacks about
    it."""
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


def chained(size: int) -> Iterator[str]:
    """Yields the same run, where each rank's error is caught and raised again, with a traceback each time."""
    first, waiting = (
        next(failed(1)),
        "torch.distributed.DistBackendError: NCCL watchdog thread terminated with exception",
    )
    handled = "During handling of the above exception, another exception occurred:"
    caused = "The above exception was the direct cause of the following exception:"
    yield first
    for rank in _ranks(size, 26_000):
        head, label = f"[rank{rank}]: Traceback (most recent call last):\n", f"[rank{rank}]: "
        frames = FRAMES.format(rank=rank)
        yield (
            f"{head}{frames}{label}{waiting}\n{label}\n{label}{handled}\n{label}\n{head}{frames}{label}RuntimeError: step failed\n"
            f"{label}\n{label}{caused}\n{label}\n{head}{frames}{label}job.TrainerError: rank {rank} gave up\n"
        )


def boxed(size: int) -> Iterator[str]:
    """Yields the same run, in which rich draws a box with source lines around each rank's frames."""
    rows = [f"/env/torch/part{number}.py:{100 + number} in call_{number}" for number in range(40)]
    around = [
        f"{'❱' if near == 3 else ' '} {97 + near} │   return self._call_impl(*args, **kwargs)" for near in range(7)
    ]
    lines = [
        "╭─ Traceback (most recent call last) ─╮",
        *(f"│ {line:<96} │" for row in rows for line in (row, "", *around)),
        "╰─╯",
    ]
    yield next(failed(1))
    for rank in _ranks(size, 45_000):
        box = "".join(f"[rank{rank}]: {line}\n" for line in lines)
        yield f"{box}[rank{rank}]: DistBackendError: NCCL watchdog thread terminated with exception\n"


def _ranks(size: int, each: int) -> Iterator[int]:
    """Yields the ranks again and again, until `each` bytes per rank make `size` bytes."""
    return (number % 512 for number in range(size // each + 1))


# In its own process, because the memory of this one would count in the peak of its child processes.
ENGINE = [sys.executable, "-m", "bench.engine_alone"]
DRAIN = """
import sys
from drain3 import TemplateMiner
from drain3.template_miner_config import TemplateMinerConfig
miner = TemplateMiner(config=TemplateMinerConfig())
for line in open(sys.argv[1], errors="replace"):
    miner.add_log_message(line.rstrip())
"""
DRAIN_MAX_BYTES = 20_000_000  # bytes of a log for Drain3; its time is scaled by the size


def rivals(drain3: str, patterns: Path) -> dict[str, list[str]]:
    """Returns name and command of each other program that is installed. Prints which one is not."""
    run([*ENGINE, "signs", str(patterns)])
    found = {"wc -l": ["wc", "-l"]}
    if shutil.which("rg"):
        limits = ["--dfa-size-limit", "1G", "--regex-size-limit", "1G"]
        found["rg -c -f signs"] = search = ["rg", "-c", *limits, "-f", str(patterns)]
        if run([*search, os.devnull]).status == 2:
            sys.exit("rg refuses a sign of the knowledge base, so there is nothing to compare with")
    else:
        print("ripgrep is not installed, so rg is left out", file=sys.stderr)
    if subprocess.run([drain3, "-c", "import drain3"], capture_output=True, check=False).returncode == 0:
        found["Drain3"] = [drain3, "-c", DRAIN]
    else:
        print(
            "Drain3 is not installed, so it is left out: --drain3 PYTHON names an interpreter that has it",
            file=sys.stderr,
        )
    return found


def rows(name: str, size: int, done: dict[str, Measured], sizes: dict[str, int]) -> Iterator[str]:
    """Yields a row of the table for each program. The ratio compares its seconds per megabyte with torchtriage's."""
    ours = done["torchtriage triage"].seconds / size
    for program, one in done.items():
        each = one.seconds / sizes.get(program, size)
        failed = "" if one.status in (0, 1) else f" (exit status {one.status})"
        yield (f"| {name} | {program}{failed} | {sizes.get(program, size) / 1e6:.2f} | {one.seconds:.3f} | {1e-6 / each:.0f} "
               f"| {each / ours:.2f} | {one.peak / 1e6:.0f} |")  # fmt: skip


def stored(
    name: str, make: Callable[[int], Iterable[str]], size: int, others: dict[str, list[str]], rounds: int
) -> None:
    """Prints the rows for a log that is written to a temporary file."""
    with tempfile.TemporaryDirectory() as folder:
        path, short = Path(folder) / "run.log", Path(folder) / "short.log"
        with path.open("w") as file:
            file.writelines(make(size))
        if size < 2_000_000:
            path.write_bytes(path.read_bytes()[:size])
        size = path.stat().st_size
        with path.open("rb") as file:
            short.write_bytes(file.read(DRAIN_MAX_BYTES))
        commands = {program: [*command, str(short if program == "Drain3" else path)]
                    for program, command in {"torchtriage triage": TRIAGE, **others}.items()}  # fmt: skip
        done = medians(commands, rounds)
        if size < 2_000_000:
            alone = float(run([*ENGINE, "times", str(path), str(rounds * 5)]).output)
            done["the engine alone"] = Measured(alone, 0, 0, b"")
        print(*rows(name, size, done, {"Drain3": short.stat().st_size}), sep="\n", flush=True)


def streamed(size: int, others: dict[str, list[str]], rounds: int) -> None:
    """Prints the rows for a log that is created while it is read."""
    block = next(healthy(1)).encode()
    commands = {"torchtriage triage": [*TRIAGE, "-"], **others}
    commands.pop("Drain3", None)
    done = medians(commands, rounds, lambda: islice(iter(lambda: block, b""), size // len(block)))
    print(*rows("healthy, from a pipe", size // len(block) * len(block), done, {}), sep="\n", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--drain3", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--gigabytes", type=float, default=1.0, help="of the big logs; ten times as many are streamed")
    options = parser.parse_args()
    big = int(options.gigabytes * 1e9)
    logs: list[tuple[str, Callable[[int], Iterable[str]], int]] = [
        ("healthy", healthy, 50_000), ("512 ranks, 511 waiting", failed, 50_000),
        ("healthy", healthy, 1_000_000), ("512 ranks, 511 waiting", failed, 1_000_000),
        ("512 ranks, 511 waiting", failed, big // 10), ("512 ranks, chained exceptions", chained, big // 10),
        ("512 ranks, rich's boxes", boxed, big // 10), ("healthy", healthy, big),
        ("an error line every 1,000", noisy, big),
    ]  # fmt: skip
    with tempfile.NamedTemporaryFile() as patterns:
        others = rivals(options.drain3, Path(patterns.name))
        print(
            "| log | program | MB | median s | MB/s | time per MB, triage = 1 | peak MB |\n|---|---|---|---|---|---|---|"
        )
        for name, make, size in logs:
            # For text that is not ASCII, rg uses slow automata and takes minutes for a log with boxes.
            able = {program: command for program, command in others.items() if make is not boxed or command[0] != "rg"}
            stored(name, make, size, able, options.rounds)
        streamed(big * 10, others, 1)


if __name__ == "__main__":
    main()
