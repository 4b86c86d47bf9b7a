"""Turns the kept bytes of a file into lines: decoded, unfolded, prefixes off, rank and host known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from app.domain.line import Line
from app.reading.decoding import decoded
from app.reading.labels import Labels
from app.reading.places import Place
from app.reading.prefixes import labels
from app.reading.unfolding import Unfolded, Unfolding

FILE_SPAN = 1 << 40  # lines; the distance between two files of a run in the order of its lines
_SAMPLE = 200  # lines looked at to learn a file's labels


def lines(
    kept: Iterable[tuple[int, bytes]],
    where: Place,
    order: int,
    numbers: Sequence[int] | None = None,
    verbatim: bool = True,
) -> Iterator[Line]:
    """Yields the lines of one file, given with their places in it; `order` is added to each to give its place in the
    run. `numbers` holds the lines' numbers in the file, where they were moved; `verbatim` is False where they are none
    of the file's own."""
    prefix = f"{where.log or where.file or ''}|"
    for place, unfolded in _unfolded(iter(kept), verbatim):
        origin = unfolded.origin
        yield Line(  # By place, as names take twice as long.
            unfolded.number if numbers is None else numbers[unfolded.number - 1],
            unfolded.raw,
            origin.text,
            order + place,
            where.file,
            where.rank if origin.rank is None else origin.rank,
            where.local_rank if origin.local_rank is None else origin.local_rank,
            origin.host or where.host,
            origin.time,
            prefix + origin.stream,
            where.attempt,
            origin.pod or where.pod,
            where.node if origin.node is None else origin.node,
        )


def _unfolded(kept: Iterator[tuple[int, bytes]], verbatim: bool) -> Iterator[tuple[int, Unfolded]]:
    """Yields (place in the file, line)."""
    head = [(place, decoded(raw).removesuffix("\r")) for place, raw in islice(kept, _SAMPLE)]
    plain = list(_each(head, Unfolding(Labels(), verbatim)))
    known = labels([line.origin.text for _, line in plain])
    if not known.forms:
        yield from plain
        head = []
    rest = ((place, decoded(raw).removesuffix("\r")) for place, raw in kept)
    yield from _each(chain(head, rest), Unfolding(known, verbatim))


def _each(kept: Iterable[tuple[int, str]], unfolding: Unfolding) -> Iterator[tuple[int, Unfolded]]:
    last = 0
    for place, text in kept:
        if place != last + 1:
            for line in unfolding.rest():
                yield line.number, line
        last = place
        for line in unfolding.lines(place, text):
            yield place, line
    for line in unfolding.rest():
        yield line.number, line
