"""Sections of a log with a heading that names a process: `==> rank_3.log <==` of tail, composer's blocks of a rank."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from torchtriage.domain.line import Line
from torchtriage.lazy_regex import lazy_regex
from torchtriage.reading.prefixes.paths import FileOrigin, FileOrigins

HEADINGS = (r"==> \S.{0,300} <==\s*$", r"-{10}(Begin|End) global rank \d{1,6} STD(OUT|ERR)-{10}")
MARKS = ("==> ", "-----")
_FILE = lazy_regex(r"==> (\S.{0,300}) <==\s*$")
_RANK = lazy_regex(r"-{10}(Begin|End) global rank (\d{1,6}) STD(?:OUT|ERR)-{10}")


@dataclass(slots=True)
class Sections:
    """Call `settled` with every kept line of a run, in order."""

    _open: dict[str, FileOrigin] = field(default_factory=dict)  # stream → origin
    _places: FileOrigins = field(default_factory=FileOrigins)

    def settled(self, lines: Sequence[Line], said: Set[str]) -> Sequence[Line]:
        """Returns the lines. Those without an origin get the one in the heading above them. `said` are the marks that
        the lines contain."""
        if not self._open and said.isdisjoint(MARKS):
            return lines
        return [self._settled(line) for line in lines]

    def _settled(self, line: Line) -> Line:
        if line.text.startswith(MARKS) and self._is_heading(line):
            return line
        where = self._open.get(line.stream) if self._open else None
        if where is None:
            return line
        return line._replace(
            rank=where.rank if line.rank is None else line.rank,
            local_rank=where.local_rank if line.local_rank is None else line.local_rank,
            host=line.host or where.host,
            attempt=line.attempt or where.attempt,
            stream=f"{line.stream}{where.file}/",
        )

    def _is_heading(self, line: Line) -> bool:
        if found := _FILE.match(line.text):
            self._open[line.stream] = self._places.of(found[1], several=True)
        elif found := _RANK.match(line.text):
            if found[1] == "Begin":
                self._open[line.stream] = FileOrigin(f"rank {found[2]}", rank=int(found[2]))
            else:
                self._open.pop(line.stream, None)
        return found is not None
