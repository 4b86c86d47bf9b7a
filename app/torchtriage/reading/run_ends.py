"""Reads the lines at the beginning and end of a run's files, however long these are."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from torchtriage.domain.line import Line
from torchtriage.errors import UnreadableLog
from torchtriage.reading.prefixes.paths import FileOrigins
from torchtriage.reading.reread_lines import tail_lines
from torchtriage.reading.sources import Run

HEAD, TAIL = 512 << 10, 128 << 10  # bytes of a file
MAX_FILES = 16  # files that are read


def run_ends(run: Run) -> tuple[list[Line], bool]:
    """Returns the lines at the beginning and end of each file, and whether lines between them were left out. Files that
    cannot be read are left out."""
    origins = FileOrigins(run.names)
    found: list[Line] = []
    partly = False
    for number, file in enumerate(run.files()):
        if file.unread is not None:
            continue
        origin = origins.of(file.name, run.several or file.member)
        try:
            pieces = list(_ends(file.chunks())) if number < MAX_FILES else []
            deque(file.chunks() if number >= MAX_FILES and file.member else (), maxlen=0)
        except UnreadableLog:  # the verdict of the run names the file and the reason
            continue
        partly = partly or len(pieces) > 1 or number >= MAX_FILES
        for first, content in pieces:
            found += tail_lines(first, content, origin)
    return found, partly


def _ends(chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yields the beginning of a file and, if it is longer, its end. Each has whole lines and the number of its first
    line."""
    head, tail = bytearray(), bytearray()
    lines_above = 0  # lines before `tail`
    for chunk in chunks:
        room = max(0, HEAD - len(head)) if not tail else 0
        head += chunk[:room]
        tail += chunk[room:]
        if len(tail) > 2 * TAIL:
            lines_above += tail.count(b"\n", 0, len(tail) - TAIL)
            del tail[: len(tail) - TAIL]
    yield 1, bytes(head)
    if tail:
        lines_above += head.count(b"\n")
        begin = tail.find(b"\n") + 1  # skips the rest of a line
        yield lines_above + 2, bytes(tail[begin:])
