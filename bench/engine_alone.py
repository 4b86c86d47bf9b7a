"""Runs in its own process: `signs FILE` writes the knowledge base's signs for rg; `times FILE ROUNDS` prints the median
seconds of a triage of a log in memory, after warming up; `python -m bench.engine_alone` prints a table for logs of 50
KB, each seen for the first time and again, in milliseconds of CPU and wall time."""

from __future__ import annotations

import random
import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.fresh import failed, healthy, short
from torchtriage.engine import Engine
from torchtriage.knowledge import BUILT_IN
from torchtriage.knowledge.loader import load
from torchtriage.matching.patterns import Patterns, regex_of
from torchtriage.reading.sources import from_bytes

CORPUS = Path(__file__).resolve().parents[1] / "tests" / "corpus"
_ROUNDS = 15
_MIN_BYTES, _MAX_BYTES = 4_000, 120_000  # bytes of a log of the corpus that is used in a mixture


def signs(path: Path) -> None:
    """Writes one regex per line, for the signs that are searched in raw lines. A search by line does not need line
    feeds."""
    found = [
        regex_of(pattern.sign) for pattern in Patterns(load([BUILT_IN])).all if pattern.sign.where in ("any", "line")
    ]
    path.write_text("\n".join(dict.fromkeys(sign for sign in found if not re.search(r"\\n|\n", sign))) + "\n")


def median(path: Path, rounds: int) -> float:
    """Returns the median seconds of one triage."""
    engine, data = Engine(load([BUILT_IN])), path.read_bytes()
    return statistics.median([_timed(engine, data)[1] for _ in range(rounds + 1)][1:])


def mixture(seed: int) -> bytes:
    """Returns 50 KB of real logs, whole and one after another. The digits depend on the seed."""
    dice = random.Random(seed)
    paths = [path for path in sorted(CORPUS.glob("*/log.txt")) if _MIN_BYTES < path.stat().st_size < _MAX_BYTES]
    data = b""
    while len(data) < 50_000:
        data += dice.choice(paths).read_bytes()
    digits = dice.sample(b"56789", 5)
    return data[:50_000].translate(bytes.maketrans(b"56789", bytes(digits)))


def table() -> None:
    """Prints a row for each kind of log. Every round reads a log that is new to this process, then the same again."""
    engine = Engine(load([BUILT_IN]))
    kinds: dict[str, Callable[[int], bytes]] = {
        "healthy": healthy, "512 ranks, 511 waiting": failed, "short lines, one failure": short, "genuine logs, one after another": mixture,
    }  # fmt: skip
    print("| log of 50 KB | unseen, CPU ms | unseen, wall ms | seen, CPU ms | seen, wall ms |\n|---|---|---|---|---|")
    for name, make in kinds.items():
        for seed in range(-3, 0):
            _timed(engine, make(seed))
        unseen, seen = [], []
        for seed in range(_ROUNDS):
            data = make(seed)
            unseen.append(_timed(engine, data))
            seen.append(_timed(engine, data))
        cells = (statistics.median(one[at] for one in times) * 1000 for times in (unseen, seen) for at in (0, 1))
        print(f"| {name} | {' | '.join(f'{cell:.1f}' for cell in cells)} |", flush=True)


def _timed(engine: Engine, data: bytes) -> tuple[float, float]:
    """Returns CPU and wall seconds of one triage."""
    run = from_bytes(data)
    cpu, wall = time.process_time(), time.perf_counter()
    engine.triage(run)
    return time.process_time() - cpu, time.perf_counter() - wall


if __name__ == "__main__":
    if len(sys.argv) == 1:
        table()
    elif sys.argv[1] == "signs":
        signs(Path(sys.argv[2]))
    else:
        print(median(Path(sys.argv[2]), int(sys.argv[3])))
