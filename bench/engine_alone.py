"""In a process of its own: `signs FILE` writes the knowledge base's signs for rg; `times FILE ROUNDS` prints the median
seconds that the engine takes for a log in memory, everything loaded and warm."""

from __future__ import annotations

import re
import statistics
import sys
import time
from pathlib import Path

from app.knowledge import BUILT_IN
from app.knowledge.loader import load
from app.reading.sources import from_bytes
from app.triage.engine import Engine
from app.triage.patterns import Patterns, source


def signs(path: Path) -> None:
    """Writes one regex a line: those that are searched in raw lines. A search by the line knows no line feeds."""
    found = [
        source(pattern.sign) for pattern in Patterns(load([BUILT_IN])).all if pattern.sign.where in ("any", "line")
    ]
    path.write_text("\n".join(dict.fromkeys(sign for sign in found if not re.search(r"\\n|\n", sign))) + "\n")


def median(path: Path, rounds: int) -> float:
    """-> the median seconds of one triage."""
    engine, data = Engine(load([BUILT_IN])), path.read_bytes()
    seconds = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        engine.triage(from_bytes(data))
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds[1:])


if __name__ == "__main__":
    if sys.argv[1] == "signs":
        signs(Path(sys.argv[2]))
    else:
        print(median(Path(sys.argv[2]), int(sys.argv[3])))
