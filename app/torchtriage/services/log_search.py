"""Searches a stored log for lines. Each call takes a limited time and says where to continue."""

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

SECONDS = 0.5  # time limit of a call; the caller continues from where it ended
_SAMPLE = 200  # first lines of a file, from which its labels are learned
_MAX_LENGTH = 16 << 10  # maximum bytes of a line that are shown
_MAX_HIT_LENGTH = 300  # the same in a list of hits
_PREFIX = 400  # characters of a line that can contain its rank
_NEAR = 1 << 16  # bytes of the first part of a backward search
_BARE = frozenset({"short", "local", "number", "pals", "bracket"})  # labels with a number that may not be a rank


@dataclass(frozen=True, slots=True)
class LineQuery:
    """What a line must have: words (case is ignored; `regex` makes them a regular expression), an error, a rank. None
    and False mean any line."""

    words: str | None = None
    error: bool = False
    rank: int | None = None
    regex: bool = False


@dataclass(frozen=True, slots=True)
class Hits:
    """The first lines found, and the count of all found from the start up to line `looked`. `ended`: this is the end of
    the log."""

    lines: tuple[StoredLine, ...]
    count: int
    looked: int
    ended: bool


@dataclass(frozen=True, slots=True)
class Found:
    """The line number found, or None. `looked` is the last line searched; `ended` says whether it is the end of the
    log."""

    line: int | None
    looked: int
    ended: bool


@dataclass(frozen=True, slots=True)
class Stream:
    """Lines of one rank. `next` is the line to continue from, None at the end of the log."""

    lines: tuple[StoredLine, ...]
    next: int | None


class Writers:
    """Finds who wrote a line of a file: from the line's labels, or else from the file's path."""

    def __init__(self, known: Labels, of_file: int | None) -> None:
        self._known, self._of_file = known, of_file
        self._bare = not _BARE.isdisjoint(known.forms)

    def rank(self, raw: str) -> int | None:
        """Returns the rank of a line, or its local rank if the line has no other."""
        origin = strip_prefixes(raw[:_PREFIX], self._known)
        own = origin.rank if origin.rank is not None else origin.local_rank
        return self._of_file if own is None else own

    def bare(self, raw: str) -> str:
        """Returns the line without its prefixes."""
        return strip_prefixes(raw, self._known).text

    def pattern(self, rank: int) -> str | None:
        """Returns a regex that all lines of the rank match, or None if every line may be of the rank. Other lines can
        match, too."""
        if self._of_file == rank:
            return None
        number = f"0*{rank}"
        bare = rf"|(?:^|[\s\[(])(?i:r|gpu|local[_ ]?rank|cuda|device)?[ =:_]?{number}[\]:|) ]" if self._bare else ""
        return rf"{OF_RANK.format(number)}|[\[:,]{rank}[\],]{bare}"

    def may_hold(self, rank: int, marks: BlockFeatures) -> bool:
        """Returns whether a block of the file with these features may contain lines of the rank."""
        return self._of_file == rank or self._bare or marks.may_hold(rank)


def writers(service: Service, incident: Incident, file: StoredFile) -> Writers:
    """Returns the writers of a file. Raises NotFound and StorageUnavailable."""
    place = _place_of(file.name, tuple(known.name for known in incident.log.files))
    own = place.rank if place.rank is not None else place.local_rank
    return Writers(_labels(service.blobs.lines, file.sha256), own)


@lru_cache(maxsize=64)
def _place_of(name: str, names: tuple[str, ...]) -> FileOrigin:
    """Returns what a file's name tells, compared with all names of the log. Cached, because thousands of names take a
    quarter of a second."""
    return FileOrigins(names).of(name, len(names) > 1)


@lru_cache(maxsize=256)
def _labels(lines: Callable[[str, int, int], list[StoredLine]], sha256: str) -> Labels:
    return learn_labels([line.text for line in lines(sha256, 1, _SAMPLE)])


def find(
    service: Service, incident: Incident, file: StoredFile, sought: LineQuery, start: int, back: bool = False
) -> Found:
    """Returns the next matching line from `start` on, or with `back` the last one up to `start`. Raises NotFound,
    StorageUnavailable, and BadInput if the regular expression cannot be used."""
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
    """Returns the first `most` matching lines from `start` on, shortened, and the number of matches found within the
    time limit. Raises the errors of `find`."""
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
                    shown = raw[:_MAX_HIT_LENGTH].decode("utf-8", "replace").removesuffix("\r")
                    lines.append(StoredLine(number, shown, len(raw) > _MAX_HIT_LENGTH))
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
    """Returns at most `count` lines of a rank from `start` on, or backward from it, nearest first. Stops at `weight`
    characters in total and at the time limit. Raises NotFound and StorageUnavailable."""
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
                line = raw[:_MAX_LENGTH].decode("utf-8", "replace").removesuffix("\r")
                lines.append(StoredLine(number, line, len(raw) > _MAX_LENGTH))
                weight -= len(line)
        after = first - 1 if back else first + text.count(b"\n") + 1
        if time.monotonic() > until and 1 <= after <= file.lines:
            return Stream(tuple(lines), after)
    return Stream(tuple(lines), None)


def _fits(service: Service, incident: Incident, file: StoredFile, sought: LineQuery) -> Callable[[bytes], bool]:
    if sought.words and sought.regex:  # a match in the block may continue past the end of a line
        alone = _fits(service, incident, file, replace(sought, regex=False))
        pattern = line_pattern(sought.words, True)
        return lambda raw: bool(pattern.search(raw)) and alone(raw)
    if sought.rank is None:
        return lambda raw: True
    known = writers(service, incident, file)
    return lambda raw: known.rank(raw[:_MAX_LENGTH].decode("utf-8", "replace")) == sought.rank


def _wanted(
    service: Service, incident: Incident, file: StoredFile, sought: LineQuery
) -> Callable[[BlockFeatures], bool] | None:
    """Returns a function that says whether a block may contain matches, by its features; None if every block may."""
    if sought.rank is None:
        return (lambda marks: marks.error) if sought.error and not sought.words else None
    known, rank = writers(service, incident, file), sought.rank
    return lambda marks: known.may_hold(rank, marks) and (marks.error or not sought.error)


def _pattern(service: Service, incident: Incident, file: StoredFile, sought: LineQuery) -> re2._Regexp:
    """Returns a pattern that every matching line contains. Other lines can match it, too."""
    if sought.words:
        return line_pattern(sought.words, sought.regex)
    if sought.error:
        return re2.compile(f"(?m){ERRORS}".encode())
    least = writers(service, incident, file).pattern(sought.rank) if sought.rank is not None else None
    return re2.compile(f"(?m){least}".encode() if least else rb"(?m)^")


def _forwards(pattern: re2._Regexp, first: int, text: bytes, start: int) -> Iterator[tuple[int, bytes]]:
    """Yields (number, line) for the lines from `start` on that contain the pattern."""
    place, number = _place(text, start - first), max(start, first)
    while place < len(text) and (hit := pattern.search(text, place)):
        begin = text.rfind(b"\n", 0, hit.start()) + 1
        number += text.count(b"\n", place, begin)
        end = text.find(b"\n", hit.start())
        end = len(text) if end < 0 else end
        yield number, text[begin:end]
        place, number = end + 1, number + 1


def _backwards(pattern: re2._Regexp, first: int, text: bytes, start: int) -> Iterator[tuple[int, bytes]]:
    """Yields (number, line) for the lines up to `start` that contain the pattern, last line first."""
    end, near = _place(text, start - first + 1), _NEAR
    while end > 0:
        begin = text.rfind(b"\n", 0, max(end - near, 0)) + 1 if end > near else 0
        part = text[begin:end]
        found = list(_forwards(pattern, first + text.count(b"\n", 0, begin), part, 0))
        yield from reversed(found)
        end, near = begin, near * 2


def _place(text: bytes, lines: int) -> int:
    """Returns the offset after the first `lines` lines of a text, or the text's length if it has fewer."""
    if lines > text.count(b"\n"):
        return len(text)
    place = 0
    for _ in range(max(lines, 0)):
        place = text.find(b"\n", place) + 1
    return place
