"""Turns the kept bytes of a file into lines: decoded, parted at carriage returns, prefixes off, rank and host known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

from app.domain.line import Line
from app.reading.prefixes import Origin, labels, take_off

FILE_SPAN = 1 << 40  # lines; the distance between two files of a run in the order of its lines
LONGEST_TEXT = 16 << 10  # characters of a line that are looked at; evidence shows the same
_SAMPLE = 200  # lines looked at to learn a file's labels
_BAR = re.compile(r"\d+%\|")
_GLUED = re.compile(r"(?<=\S)(?=(?:\[rank\d+\]: ?)?Traceback \(most recent call last\))")
# A traceback whose line feeds a web form took away.
_FLAT = "Traceback (most recent call last): File "
_IN_ONE_LINE = re.compile(
    r"(?<=:)(?= File \")| (?= ?File \"[^\"]+\", line \d)|(?<=[\s)\]]) ?(?=(?:\w+\.)*[A-Z]\w*(?:Error|Exception): )"
)
_ATTEMPT = re.compile(r"(?:^|/)attempt_(\d+)/(\d+)/")
_RANK_IN_NAME = re.compile(r"(?:^|[/_.-])(?:global_)?rank[_-]?(\d+)(?=[/_.-]|$)|_(\d+)\.(?:out|err)$", re.I)


@dataclass(frozen=True, slots=True)
class Place:
    """What a file's path tells of all its lines."""

    file: str | None
    rank: int | None = None
    local_rank: int | None = None
    attempt: int = 0


def place(name: str, several: bool) -> Place:
    """-> what the path of a run's file tells: torchrun's tree, `%j_%t.out` of Slurm, `rank_3.log`."""
    if not several:
        return Place(None)
    if tree := _ATTEMPT.search(name):
        # One folder a host: with a single host the local rank is the rank.
        return Place(name, rank=int(tree[2]), local_rank=int(tree[2]), attempt=int(tree[1]))
    # Slurm names the tasks of an array slurm-%A_%a.out by default: there the number is no rank.
    if (found := _RANK_IN_NAME.search(name)) and not name.rpartition("/")[2].startswith("slurm-"):
        return Place(name, rank=int(found[1] or found[2]))
    return Place(name)


def lines(kept: Iterable[tuple[int, bytes]], where: Place, order: int) -> Iterator[Line]:
    """Yields the lines of one file; `order` is added to each line's number to give its place in the run."""
    rest = iter(kept)
    sample = list(islice(rest, _SAMPLE))
    known = labels(raw.decode("utf-8", "replace") for _, raw in sample)
    for number, raw in chain(sample, rest):
        for part in _parts(raw.decode("utf-8", "replace").removesuffix("\r")):
            yield _line(number, part[:LONGEST_TEXT], take_off(part[:LONGEST_TEXT], known), where, order)


def _parts(text: str) -> list[str]:
    """Parts a line that progress bars rewrote, and one into which two writers wrote."""
    parts = [text]
    if "\r" in text:
        every = [part for part in text.split("\r") if part.strip()]
        parts = [part for part in every[:-1] if not _BAR.search(part)] + every[-1:]
    if "Traceback (" in text:
        parts = [piece for part in parts for piece in _GLUED.split(part)]
        parts = [piece for part in parts for piece in (_IN_ONE_LINE.split(part) if _FLAT in part else [part])]
    return parts


def _line(number: int, raw: str, origin: Origin, where: Place, order: int) -> Line:
    rank = where.rank if origin.rank is None else origin.rank
    local = where.local_rank if origin.local_rank is None else origin.local_rank
    return Line(
        number=number,
        raw=raw,
        text=origin.text,
        order=order + number,
        file=where.file,
        rank=rank,
        local_rank=local,
        host=origin.host,
        time=origin.time,
        stream=f"{where.file or ''}|{origin.stream}",
        attempt=where.attempt,
    )
