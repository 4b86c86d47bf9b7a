"""Times the requests of the log viewer for a stored log: `python -m bench.log_viewer [--gb 1] [--folder FOLDER]`.

The log is made from a seed: 512 ranks start, eight of them continue, with a handled error now and then, and at the end
all fail. It is stored as by the service, in FOLDER (default: a temporary one, removed afterwards). Each row has the
wall and CPU time of one response, and the number of responses until the line was shown.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from bench.big_logs import failed, healthy
from torchtriage.domain.incident import Incident, Job, State, StoredFile, StoredLog
from torchtriage.services.log_search import Found, LineQuery, find
from torchtriage.services.service import Service, close_service, open_service
from torchtriage.settings import Settings
from torchtriage.web.pages.log_window import Wanted, log_piece

_WARNING = "[rank170]:[W501 09:10:00.000001 Utils.hpp:164] Warning: Environment variable NCCL_ASYNC_ERROR_HANDLING is deprecated\n"
_LAST = "srun: Job step aborted: the very last line\n"


@dataclass(frozen=True, slots=True)
class Asked:
    """The time of the slowest of `answers` responses, in seconds of wall and CPU time."""

    wall: float
    processor: float
    answers: int
    said: str


def long_log(size: int) -> Iterator[bytes]:
    """Yields a log of about `size` bytes."""
    for rank in range(512):
        yield "".join(
            f"gpu-{rank // 8:03d}:{4000 + rank}:{5000 + rank} [{rank % 8}] NCCL INFO Channel {channel:02d}/0 : {rank}[{rank % 8}] -> "
            f"{(rank + 1) % 512}[{(rank + 1) % 8}] via NET/IB/0\n[rank{rank}]: channel {channel} is set up\n"
            for channel in range(16)
        ).encode()
    written, middle = 0, False
    for block in healthy(size):
        if written > size // 2 and not middle:
            middle = True
            yield _WARNING.encode() + b"ConnectionError: the tracker did not answer, trying again\n"
        yield block.encode()
        written += len(block)
        if written >= size:
            break
    yield from (part.encode() for part in islice(failed(1), 1 + 512))
    yield _LAST.encode()


def stored(service: Service, size: int) -> tuple[Incident, float]:
    """Returns an incident with such a log, and the CPU seconds of storing it."""
    began = time.process_time()
    with service.blobs.writing() as file:
        for part in long_log(size):
            file.write(part)
        kept = StoredFile("run.log", *file.finish())
        file.keep()
    took = time.process_time() - began
    return Incident("1", State.TRIAGED, datetime.now(UTC), Job(), StoredLog(kept.sha256, (kept,))), took


def questions(service: Service, incident: Incident) -> dict[str, Callable[[], Asked]]:
    """Returns the requests, by their names in the table."""
    file = incident.log.files[0]
    dice = random.Random(1)

    def show(**wanted: int) -> Callable[[], Asked]:
        return lambda: _timed([lambda: len(log_piece(service, incident, None, Wanted(**wanted)).rows)])

    def look(start: int, back: bool = False, **sought: object) -> Callable[[], Asked]:
        return lambda: _looked(service, incident, LineQuery(**sought), start, back)  # type: ignore[arg-type]

    def anywhere() -> Asked:
        lines = [dice.randint(1, file.lines) for _ in range(100)]
        return _timed([lambda at=at: len(log_piece(service, incident, None, Wanted(around=at)).rows) for at in lines])

    return {
        "first lines": show(first=1),
        "the last line": show(around=file.lines),
        "100 lines anywhere, the slowest": anywhere,
        "rank 3 (one line in eight) in the middle": show(around=file.lines // 2, rank=3),
        "rank 170 (silent since its start) from line 1": show(first=1, rank=170),
        "rank 170 in the middle": show(around=file.lines // 2, rank=170),
        "rank 170 at the end": show(around=file.lines, rank=170),
        "rank 999 (there is none)": show(around=file.lines // 2, rank=999),
        "next error from line 1": look(1, error=True),
        "next error from three quarters on": look(3 * file.lines // 4, error=True),
        "error before three quarters": look(3 * file.lines // 4, back=True, error=True),
        "words in the last line, from line 1": look(1, words="the very last line"),
        "words nowhere, from line 1": look(1, words="no such words"),
        "words in the last line, of rank 3": look(1, words="Step 1999", rank=3),
    }


def _looked(service: Service, incident: Incident, sought: LineQuery, start: int, back: bool) -> Asked:
    answers: list[Asked] = []
    found = Found(None, start, False)
    while found.line is None and not found.ended:
        at = found.looked
        before, processor = time.perf_counter(), time.process_time()
        found = find(service, incident, incident.log.files[0], sought, at, back)
        answers.append(Asked(time.perf_counter() - before, time.process_time() - processor, 1, f"line {found.line}"))
    return Asked(
        max(one.wall for one in answers), sum(one.processor for one in answers), len(answers), answers[-1].said
    )


def _timed(asks: list[Callable[[], int]]) -> Asked:
    slowest = Asked(0, 0, 0, "")
    for ask in asks:
        wall, processor = time.perf_counter(), time.process_time()
        rows = ask()
        took = Asked(time.perf_counter() - wall, time.process_time() - processor, 1, f"{rows} rows")
        slowest = max(slowest, took, key=lambda one: one.processor)
    return slowest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gb", type=float, default=1.0)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        service = open_service(Settings(data_dir=folder, workers=0), lambda service, incident: None, working=False)
        stack.callback(close_service, service)
        incident, took = stored(service, int(given.gb * (1 << 30)))
        print(f"{incident.log.bytes:,} bytes, {incident.log.lines:,} lines; stored in {took:.2f} s of processor time\n")
        print("| asked | slowest answer, ms | processor, ms | answers | got |\n|---|---|---|---|---|")
        for name, ask in questions(service, incident).items():
            one = ask()
            print(
                f"| {name} | {one.wall * 1e3:.0f} | {one.processor * 1e3:.0f} | {one.answers} | {one.said} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
