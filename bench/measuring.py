"""Runs programs on a log and measures their time and peak memory."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

TRIAGE = [str(Path(sys.executable).with_name("torchtriage")), "triage", "--json"]


@dataclass(frozen=True, slots=True)
class Measured:
    """One run of a program: wall seconds including its start, peak memory in bytes, exit status and output."""

    seconds: float
    peak: int
    status: int
    output: bytes


def run(command: Sequence[str], feed: Iterable[bytes] | None = None) -> Measured:
    """Runs `command` once. `feed` is written to its standard input while it reads, and is never stored."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL if feed is None else subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    if feed is not None:
        threading.Thread(target=_write, args=(process, feed), daemon=True).start()
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Measured(time.perf_counter() - began, usage.ru_maxrss * 1024, process.returncode, output)


def medians(
    commands: dict[str, Sequence[str]], rounds: int, feed: Callable[[], Iterable[bytes]] | None = None
) -> dict[str, Measured]:
    """Returns for each name the run with the median of the seconds. The programs take turns, so that a busy machine
    slows all alike. The first round warms the caches and does not count."""
    runs: dict[str, list[Measured]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, command in commands.items():
            measured = run(command, feed() if feed else None)
            if turn:
                runs[name].append(measured)
    return {
        name: Measured(statistics.median(one.seconds for one in done), max(one.peak for one in done), done[-1].status,
                       done[-1].output)
        for name, done in runs.items()
    }  # fmt: skip


def _write(process: subprocess.Popen[bytes], feed: Iterable[bytes]) -> None:
    assert process.stdin is not None
    try:
        for chunk in feed:
            process.stdin.write(chunk)
        process.stdin.close()
    except BrokenPipeError:
        return
