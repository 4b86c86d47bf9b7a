"""Fuzzes the engine with mutations of real logs, guided by coverage: `python bench/fuzz.py [--seconds 600] [--keep
DIR]`.

Needs atheris (`pip install atheris`), which is not a dependency of the project. The only allowed exception is
UnreadableLog, and no input may take longer than ten seconds or more than 2 GB. The first input that breaks this ends
the run and is left in DIR.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["torchtriage"]):
    from torchtriage.engine import Engine
    from torchtriage.errors import LogTooLarge, UnreadableLog
    from torchtriage.knowledge import BUILT_IN
    from torchtriage.knowledge.loader import load
    from torchtriage.reading.sources import LogFile, Run, from_bytes
    from torchtriage.reading.unpack import UnpackBudget, Upload, unpack

from tests.properties.pieces import LINES, PREFIXES

CORPUS = Path(__file__).resolve().parent.parent / "tests" / "corpus"
MAX_LENGTH = 8 << 10  # bytes of an input
UNPACKED = 64 << 20  # bytes that an upload may unpack to


def upload(data: bytes) -> Run:
    """Returns the run in an upload of these bytes."""
    files = unpack(Upload("log", iter((data,))), UnpackBudget(UNPACKED))

    def inside() -> Iterator[LogFile]:
        for file in files:
            yield LogFile(file.name, partial(iter, file.chunks))

    return Run("log", inside, several=True)


def splice(data: bytes, size: int, seed: int) -> bytes:
    """Returns `data` with lines inserted, doubled, moved or prefixed, or changed by libFuzzer's own mutations."""
    dice = random.Random(seed)
    if dice.random() < 0.4:
        return bytes(atheris.Mutate(data, size))
    lines = data.split(b"\n")
    for _ in range(dice.randint(1, 6)):
        at = dice.randrange(len(lines))
        match dice.randrange(4):
            case 0:
                lines.insert(at, dice.choice(LINES).encode())
            case 1:
                lines[at] = dice.choice(PREFIXES).encode() + lines[at]
            case 2:
                lines.insert(dice.randrange(len(lines)), lines[at])
            case _:
                lines[at] = lines[at][: dice.randrange(len(lines[at]) + 1)]
    return b"\n".join(lines)[:size]


def seeds(folder: Path) -> Path:
    """Fills the folder with beginnings and ends of the corpus's logs, and returns it."""
    for file in sorted(CORPUS.glob("*/log.txt")):
        data = file.read_bytes()
        for name, part in (("head", data[:4000]), ("tail", data[-4000:])):
            (folder / f"{file.parent.name}.{name}").write_bytes(part)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--keep", type=Path, required=True, help="a folder for inputs worth keeping, and for the crash")
    parser.add_argument("--uploads", action="store_true", help="go through unpacking as well")
    args = parser.parse_args()
    inputs = args.keep / "inputs"
    inputs.mkdir(parents=True, exist_ok=True)
    engine = Engine(load([BUILT_IN]))

    def once(data: bytes) -> None:
        try:
            engine.triage(upload(data) if args.uploads else from_bytes(data))
        except (UnreadableLog, LogTooLarge):
            return

    options = ["-timeout=10", "-rss_limit_mb=2048", f"-max_len={MAX_LENGTH}", f"-max_total_time={args.seconds}"]
    folders = [f"-artifact_prefix={args.keep}/", str(seeds(inputs))]
    atheris.Setup([sys.argv[0], *options, *folders], once, custom_mutator=splice)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
