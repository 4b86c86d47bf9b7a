"""Walks the files of a run: blocks of each, windows around hits, lines, and one reading for each run that they hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from torchtriage.causality.file_order import Clock, merge
from torchtriage.causality.run_reading import RunReading
from torchtriage.causality.word_scan import Said, said
from torchtriage.domain.line import START, Line, Position
from torchtriage.domain.verdict import Stats
from torchtriage.errors import UnreadableLog
from torchtriage.facts import Environment
from torchtriage.matching.matcher import Matcher
from torchtriage.matching.patterns import Patterns
from torchtriage.reading.blocks import blocks
from torchtriage.reading.lines import lines
from torchtriage.reading.nearby_times import Stamps
from torchtriage.reading.prefixes.paths import FileOrigins
from torchtriage.reading.rank_numbering import Ranks
from torchtriage.reading.record_lines import LONGEST_TEXT
from torchtriage.reading.sections import Sections
from torchtriage.reading.sources import LogFile, Run
from torchtriage.reading.unwrap import unwrap
from torchtriage.reading.windows import WHOLE, Windows

_BATCH = 256  # lines at least that are looked at together


@dataclass(slots=True)
class Walk:
    """`read` walks all files of one run; after it `readings` holds at least one reading, the newest last."""

    patterns: Patterns
    matcher: Matcher
    run: Run
    readings: list[RunReading] = field(default_factory=list)
    stats: Stats = field(default_factory=Stats)
    _skipped: int = 0
    _long: int = 0
    _by_lines: bool = False  # whether the lines of a file were set or ordered otherwise
    _warnings: list[str] = field(default_factory=list)
    _last_log: str | None = None
    _end_of_last: Position = START

    def read(self) -> None:
        """Raises UnreadableLog where no file can be read or all are empty."""
        self.readings = [RunReading(self.matcher)]
        places, clock = FileOrigins(self.run.names), Clock()
        sections, ranks, stamps = Sections(), Ranks(), Stamps()
        refused: list[UnreadableLog] = []
        number = 0
        for number, file in enumerate(self.run.files(), 1):
            try:
                for batch in self._batches(file, number, places):
                    words = said(batch)
                    settled = stamps.settled(ranks.settled(sections.settled(batch, words), words))
                    self._feed(settled, words)
                    clock.feed(settled)
            except UnreadableLog as error:
                if not (self.run.several or file.member):
                    raise
                refused.append(error)
                self._warnings.append(f"left out: {error.message}")
        if refused and len(refused) == number:
            raise refused[0]
        if self.readings[0].is_blank():
            raise UnreadableLog(f"{self.run.name}: empty" if number else f"{self.run.name}: no logs")
        self._end()
        if places.of_torchrun:
            self.readings[-1].environment.started_by("torchrun")
        for reading in self.readings:
            clock.tell(reading.findings)
        merge(self.readings[-1], clock)

    def _batches(self, file: LogFile, number: int, places: FileOrigins) -> Iterator[list[Line]]:
        """Yields the kept lines of one file, many at once; what goes by unkept is sampled for progress."""
        above = self._above(file, number)
        several = self.run.several or file.member
        name = f"{self.run.name}/{file.name}" if several else self.run.name
        windows = Windows(
            self.patterns.blocks, self.patterns.wide, self.patterns.confirms, number, latest=self.patterns.latest
        )
        # Of thousands of files, which one program wrote, the first ones show whether their lines were set otherwise.
        source = unwrap(blocks(file.chunks(), name), self._by_lines or number <= WHOLE)
        self._by_lines = self._by_lines or source.by_lines
        if source.warning:
            self._warnings.append(f"{file.name}: {source.warning}" if several else source.warning)
        where = replace(places.of(file.name, several), log=file.part_of)
        if several:
            self.readings[-1].environment.files[number] = where
        sampled = 0
        batch: list[Line] = []
        try:
            for more in lines(windows.read(source.blocks), where, above, source.numbers, not source.rewritten):
                if len(batch) >= _BATCH or len(windows.sampled) > sampled:
                    yield batch
                    for at, text in windows.sampled[sampled:]:
                        self.readings[-1].environment.sample(above.down(at), text.decode("utf-8", "replace"))
                    batch, sampled = [], len(windows.sampled)
                batch += more
        except UnreadableLog:
            yield batch  # What stands before the place where a file is broken can still be read.
            raise
        yield batch
        for place, piece in windows.passing:
            for more in lines([(place, piece)], where, above, source.numbers, not source.rewritten):
                self.readings[-1].read_facts(more)
        self.stats = Stats(self.stats.bytes + windows.size, self.stats.lines + windows.lines)
        self._end_of_last = above.down(windows.lines)
        self._skipped += windows.skipped
        self._long += windows.long

    def _above(self, file: LogFile, number: int) -> Position:
        """-> the position above a file's first line; a piece of a rotated log goes on where the last ended."""
        goes_on = file.part_of is not None and file.part_of == self._last_log
        self._last_log = file.part_of
        return self._end_of_last if goes_on else Position(number, 0)

    def _feed(self, lines: list[Line], words: Said) -> None:
        start = 0
        for at in Environment.begins_at(lines, words) if lines and lines[0].file is None else ():
            self.readings[-1].feed(lines[start:at])
            start = at
            if self.readings[-1].ended:
                self.readings[-1].close()
                self.readings.append(RunReading(self.matcher, self.readings[0].repeated_frames))
        self.readings[-1].feed(lines[start:])

    def _end(self) -> None:
        self.readings[-1].close()
        if len(self.readings) > 1 and self.readings[-1].is_empty():
            self.readings.pop()  # A launcher's banner that was written late; no run of its own.
        if self._skipped:
            self._warnings.append(f"{self._skipped} of very many alike lines were passed over")
        if self._long:
            self._warnings.append(f"{self._long} lines longer than {LONGEST_TEXT >> 10} KB were read in part")
        self.readings[-1].warnings += self._warnings
