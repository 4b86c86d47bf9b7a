"""Looks for lines in a stored log, a bounded time at once: what is meant and where to begin in, the next line out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import re2

from torchtriage.domain.incident import Incident, StoredFile, StoredLine
from torchtriage.reading.block_features import ERRORS, OF_RANK, BlockFeatures
from torchtriage.reading.prefixes.learned import Labels
from torchtriage.reading.prefixes.paths import FileOrigin, FileOrigins
from torchtriage.reading.prefixes.strip import learn_labels, strip_prefixes
from torchtriage.services.line_patterns import line_pattern
from torchtriage.services.service import Service

SECONDS = 0.5  # of one look; anyone who wants to know more asks again from where it ended
_SAMPLE = 200  # first lines of a file, which tell how its lines are labelled
_LONGEST = 16 << 10  # bytes of a line that are shown
_LONGEST_HIT = 300  # and of one in a list of hits
_PREFIX = 400  # characters of a line in which its rank stands
_NEAR = 1 << 16  # bytes that a look backwards takes first
_BARE = frozenset({"short", "local", "number", "pals", "bracket"})  # labels with a number that nothing says is a rank


@dataclass(frozen=True, slots=True)
class LineQuery:
    """What a line must have: words (any case), which may be a regular expression, the look of an error, a rank. None
    and False leave it open."""

    words: str | None = None
    error: bool = False
    rank: int | None = None
    regex: bool = False


@dataclass(frozen=True, slots=True)
class Hits:
    """The first lines that were found, and how many there are from the start to `looked`; `ended` is whether that was
    the log's end."""

    lines: tuple[StoredLine, ...]
    count: int
    looked: int
    ended: bool


@dataclass(frozen=True, slots=True)
class Found:
    """The line that was found, or None; `looked` is the last one looked at, `ended` whether that was the log's end."""

    line: int | None
    looked: int
    ended: bool


@dataclass(frozen=True, slots=True)
class Stream:
    """Lines of one rank; `next` is where to look on, None at the log's end."""

    lines: tuple[StoredLine, ...]
    next: int | None


class Writers:
    """Tells who wrote a line of one file: by its labels, else by the file's path."""

    def __init__(self, known: Labels, of_file: int | None) -> None:
        self._known, self._of_file = known, of_file
        self._bare = not _BARE.isdisjoint(known.forms)

    def rank(self, raw: str) -> int | None:
        """-> the rank of a line; the local rank where it tells no other."""
        origin = strip_prefixes(raw[:_PREFIX], self._known)
        own = origin.rank if origin.rank is not None else origin.local_rank
        return self._of_file if own is None else own

    def bare(self, raw: str) -> str:
        """-> the line without what its writers put before it."""
        return strip_prefixes(raw, self._known).text

    def pattern(self, rank: int) -> str | None:
        """-> what lines of the rank have at least; None where it is every line."""
        if self._of_file == rank:
            return None
        number = f"0*{rank}"
        bare = rf"|(?:^|[\s\[(])(?i:r|gpu|local[_ ]?rank|cuda|device)?[ =:_]?{number}[\]:|) ]" if self._bare else ""
        return rf"{OF_RANK.format(number)}|[\[:,]{rank}[\],]{bare}"

    def may_hold(self, rank: int, marks: BlockFeatures) -> bool:
        """-> whether lines of the rank can be in a piece of the file with these block features."""
        return self._of_file == rank or self._bare or marks.may_hold(rank)


def writers(service: Service, incident: Incident, file: StoredFile) -> Writers:
    """Raises NotFound and StorageUnavailable."""
    place = _place_of(file.name, tuple(known.name for known in incident.log.files))
    own = place.rank if place.rank is not None else place.local_rank
    return Writers(_labels(service.blobs.lines, file.sha256), own)


@lru_cache(maxsize=64)
def _place_of(name: str, names: tuple[str, ...]) -> FileOrigin:
    """-> what a file's name among all names of the log tells; of thousands of names it takes a quarter of a second."""
    return FileOrigins(names).of(name, len(names) > 1)


@lru_cache(maxsize=256)
def _labels(lines: Callable[[str, int, int], list[StoredLine]], sha256: str) -> Labels:
    return learn_labels([line.text for line in lines(sha256, 1, _SAMPLE)])


def find(
    service: Service, incident: Incident, file: StoredFile, sought: LineQuery, start: int, back: bool = False
) -> Found:
    """-> the next line from `start` on that is sought, or the one before it. Raises NotFound, StorageUnavailable, and
    BadInput for a regular expression that cannot be used."""
    until = time.monotonic() + SECONDS
    fits = _fits(service, incident, file, sought)
    pattern = _pattern(service, incident, file, sought)
    looked = start
    for first, text in service.blobs.segments(file.sha256, start, back, _wanted(service, incident, file, sought)):
        for line, raw in (_backwards if back else _forwards)(pattern, first, text, start):
            looked = line
            if fits(raw):
                return Found(line, line, False)
            if time.monotonic() > until:
                return Found(None, line, False)
        looked = first if back else first + text.count(b"\n")
        if time.monotonic() > until:
            return Found(None, looked, looked <= 1 if back else looked >= file.lines)
    return Found(None, 1 if back else max(file.lines, 1), True)


def find_all(service: Service, incident: Incident, file: StoredFile, sought: LineQuery, start: int, most: int) -> Hits:
    """-> the first `most` lines from `start` on that are sought, each cut, and how many there are, as far as the time
    goes. Raises as `find`."""
    if not 1 <= start <= file.lines:
        return Hits((), 0, max(file.lines, 1), True)
    until = time.monotonic() + SECONDS
    fits, pattern = _fits(service, incident, file, sought), _pattern(service, incident, file, sought)
    lines: list[StoredLine] = []
    count = 0
    for first, text in service.blobs.segments(file.sha256, start, False, _wanted(service, incident, file, sought)):
        for number, raw in _forwards(pattern, first, text, start):
            if fits(raw):
                count += 1
                if len(lines) < most:
                    shown = raw[:_LONGEST_HIT].decode("utf-8", "replace").removesuffix("\r")
                    lines.append(StoredLine(number, shown, len(raw) > _LONGEST_HIT))
            if time.monotonic() > until:
                return Hits(tuple(lines), count, number, number >= file.lines)
        looked = first + text.count(b"\n")
        if time.monotonic() > until:
            return Hits(tuple(lines), count, min(looked, file.lines), looked >= file.lines)
    return Hits(tuple(lines), count, max(file.lines, 1), True)


def stream(
    service: Service,
    incident: Incident,
    file: StoredFile,
    rank: int,
    start: int,
    count: int,
    weight: int,
    back: bool = False,
) -> Stream:
    """-> at most `count` lines of a rank from `start` on, or back from it, the nearest first, of at most `weight`
    characters together, as far as the time goes. Raises NotFound, StorageUnavailable."""
    lines: list[StoredLine] = []
    if start < 1 or start > file.lines:
        return Stream((), None)
    until = time.monotonic() + SECONDS
    sought = LineQuery(rank=rank)
    fits, pattern = _fits(service, incident, file, sought), _pattern(service, incident, file, sought)
    for first, text in service.blobs.segments(file.sha256, start, back, _wanted(service, incident, file, sought)):
        for number, raw in (_backwards if back else _forwards)(pattern, first, text, start):
            if len(lines) >= count or weight <= 0 or time.monotonic() > until:
                return Stream(tuple(lines), number)
            if fits(raw):
                line = raw[:_LONGEST].decode("utf-8", "replace").removesuffix("\r")
                lines.append(StoredLine(number, line, len(raw) > _LONGEST))
                weight -= len(line)
        after = first - 1 if back else first + text.count(b"\n") + 1
        if time.monotonic() > until and 1 <= after <= file.lines:
            return Stream(tuple(lines), after)
    return Stream(tuple(lines), None)


def _fits(service: Service, incident: Incident, file: StoredFile, sought: LineQuery) -> Callable[[bytes], bool]:
    if sought.words and sought.regex:  # A hit of the block may go over the line's end.
        alone = _fits(service, incident, file, replace(sought, regex=False))
        pattern = line_pattern(sought.words, True)
        return lambda raw: bool(pattern.search(raw)) and alone(raw)
    if sought.rank is None:
        return lambda raw: True
    known = writers(service, incident, file)
    return lambda raw: known.rank(raw[:_LONGEST].decode("utf-8", "replace")) == sought.rank


def _wanted(
    service: Service, incident: Incident, file: StoredFile, sought: LineQuery
) -> Callable[[BlockFeatures], bool] | None:
    """-> whether what is sought can be in a piece of the file, by its block features; None where anything can."""
    if sought.rank is None:
        return (lambda marks: marks.error) if sought.error and not sought.words else None
    known, rank = writers(service, incident, file), sought.rank
    return lambda marks: known.may_hold(rank, marks) and (marks.error or not sought.error)


def _pattern(service: Service, incident: Incident, file: StoredFile, sought: LineQuery) -> re2._Regexp:
    """-> what any line that is sought has at least."""
    if sought.words:
        return line_pattern(sought.words, sought.regex)
    if sought.error:
        return re2.compile(f"(?m){ERRORS}".encode())
    least = writers(service, incident, file).pattern(sought.rank) if sought.rank is not None else None
    return re2.compile(f"(?m){least}".encode() if least else rb"(?m)^")


def _forwards(pattern: re2._Regexp, first: int, text: bytes, start: int) -> Iterator[tuple[int, bytes]]:
    """Yields (number, line) of the lines from `start` on in which the pattern is found."""
    place, number = _place(text, start - first), max(start, first)
    while place < len(text) and (hit := pattern.search(text, place)):
        begin = text.rfind(b"\n", 0, hit.start()) + 1
        number += text.count(b"\n", place, begin)
        end = text.find(b"\n", hit.start())
        end = len(text) if end < 0 else end
        yield number, text[begin:end]
        place, number = end + 1, number + 1


def _backwards(pattern: re2._Regexp, first: int, text: bytes, start: int) -> Iterator[tuple[int, bytes]]:
    """Yields (number, line) of the lines before and at `start` in which the pattern is found, the last one first."""
    end, near = _place(text, start - first + 1), _NEAR
    while end > 0:
        begin = text.rfind(b"\n", 0, max(end - near, 0)) + 1 if end > near else 0
        part = text[begin:end]
        found = list(_forwards(pattern, first + text.count(b"\n", 0, begin), part, 0))
        yield from reversed(found)
        end, near = begin, near * 2


def _place(text: bytes, lines: int) -> int:
    """-> where in a text the line after the first `lines` begins; its end where it has no more."""
    if lines > text.count(b"\n"):
        return len(text)
    place = 0
    for _ in range(max(lines, 0)):
        place = text.find(b"\n", place) + 1
    return place
