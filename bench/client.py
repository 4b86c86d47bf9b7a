"""Measures what the client costs a job: `python -m bench.client [--rounds 9] [--lines 500000]`.

A command works 10 µs for each line that it writes, so it writes up to 100,000 lines per second. It runs alone and under
the client, in turn, and reports how long its work took. The output goes to `cat`. The figures are medians of the
rounds' ratios. On a busy machine, trust the CPU time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

CLIENT = Path(__file__).resolve().parents[1] / "app" / "torchtriage" / "client" / "torchtriage_client.py"
WORK = """
import glob, os, sys, time

def client():
    tasks = glob.glob(f"/proc/{os.getppid()}/task/*/schedstat")
    return sum(int(open(task).read().split()[0]) for task in tasks) / 1e9

lines, spins, flush, told = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "flush", sys.argv[4]
line = "step %07d | loss 2.513 | grad norm 0.71 | lr 3.0e-04 | tokens/s 48,211 | mem 61.2 GiB | eta 03:11:52\\n" % 7
before, own, began = client(), time.process_time(), time.perf_counter()
for _ in range(lines):
    for _ in range(spins):
        pass
    sys.stdout.write(line)
    if flush:
        sys.stdout.flush()
sys.stdout.flush()
seconds, own, other = time.perf_counter() - began, time.process_time() - own, client() - before
open(told, "w").write(f"{seconds} {own} {other}")
"""
WAYS = {"pipe, flushed each line": ("flush", False), "pipe, in blocks": ("blocks", False), "file": ("blocks", True)}


def work(folder: Path, lines: int, spins: int, flush: str, to_file: bool, wrapped: bool) -> tuple[float, float, float]:
    """Returns the seconds that the command's work took, and the CPU seconds of the command and of the program that runs
    it."""
    command = [sys.executable, "-c", WORK, str(lines), str(spins), flush, str(folder / "told")]
    if wrapped:
        command = [sys.executable, str(CLIENT), "run", "--", *command]
    environment = os.environ | {"TORCHTRIAGE_URL": "http://127.0.0.1:9", "TORCHTRIAGE_SPOOL": str(folder / "spool")}
    with (folder / "out").open("wb") as out, subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=out) as reader:
        assert reader.stdin is not None
        output = out if to_file else reader.stdin
        running = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        reader.stdin.close()
        assert running.wait() == 0
    seconds, own, other = map(float, (folder / "told").read_text().split())
    return seconds, own, other


def calibrated(folder: Path) -> int:
    """Returns how many iterations of an empty loop take 10 µs together with writing a line."""
    spins = 400
    for _ in range(3):
        took = work(folder, 100_000, spins, "blocks", False, False)[1] / 100_000
        spins = max(10, round(spins * 10e-6 / took))
    return spins


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--lines", type=int, default=500_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spins = calibrated(folder)
        print("| output | alone, lines/s | under the client, lines/s | slower by | processor time of the client |")
        print("|---|---|---|---|---|")
        for way, (flush, to_file) in WAYS.items():
            took: dict[bool, list[float]] = {False: [], True: []}
            added = []
            for turn in range(options.rounds):
                for wrapped in (False, True) if turn % 2 else (True, False):
                    seconds, own, other = work(folder, options.lines, spins, flush, to_file, wrapped)
                    took[wrapped].append(options.lines / seconds)
                    if wrapped:
                        added.append(other / own)
            alone, under = (statistics.median(took[wrapped]) for wrapped in (False, True))
            slower = statistics.median(before / after for before, after in zip(*took.values(), strict=True))
            more = f"{statistics.median(added):.1%} of the command's"
            print(f"| {way} | {alone:,.0f} | {under:,.0f} | {slower - 1:.1%} | {more} |", flush=True)


if __name__ == "__main__":
    main()
