"""Reads the files of a run as a stream: read, scan, windows, lines, events; out comes a `Reading` for each launch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, partial

from torchtriage.causality.event_extraction import RunReader
from torchtriage.causality.file_order import Clock
from torchtriage.causality.run_reading import Reading
from torchtriage.domain.evidence import Evidence
from torchtriage.domain.line import START, Line, Position
from torchtriage.domain.trace import SAMPLE, Trace
from torchtriage.domain.verdict import Stats
from torchtriage.errors import UnreadableLog
from torchtriage.evidence.collect import CollectedEvidence
from torchtriage.matching.matcher import Matcher
from torchtriage.matching.patterns import Patterns
from torchtriage.reading import process_sections, rank_numbering
from torchtriage.reading.blocks import blocks
from torchtriage.reading.lines import lines
from torchtriage.reading.nearby_times import Stamps
from torchtriage.reading.prefixes.paths import FileOrigin, FileOrigins
from torchtriage.reading.process_sections import Sections
from torchtriage.reading.rank_numbering import Ranks
from torchtriage.reading.record_lines import LONGEST_TEXT
from torchtriage.reading.scan import Scanner
from torchtriage.reading.sources import LogFile, Run
from torchtriage.reading.unwrap import Unwrapped, unwrap
from torchtriage.reading.whole_files import NotRead
from torchtriage.reading.windows import WHOLE, Windows

_BATCH = 256  # lines at least that are looked at together
# Of which most lines hold none: one scan for all that wait for one.
_WORDS = (*rank_numbering.WORDS, *rank_numbering.AGENT, *process_sections.MARKS)


@dataclass(frozen=True, slots=True)
class ReadRuns:
    """What the files of a run hold: a reading for each launch in them, the newest last, and what time it was where."""

    readings: tuple[Reading, ...]
    stats: Stats
    clock: Clock
    launcher: str | None  # that the names of the files tell
    warnings: tuple[str, ...]
    evidence: Evidence


def read_runs(run: Run, patterns: Patterns, matcher: Matcher, trace: Trace | None = None) -> ReadRuns:
    """-> what was read of all files. Raises UnreadableLog where there is no file, or none can be read."""
    files = _FilesReader(patterns, matcher, run, trace)
    origins, clock = FileOrigins(run.names), Clock()
    sections, ranks, stamps = Sections(), Ranks(), Stamps()
    warnings, start_words = files.warnings, matcher.launchers.start_words
    refused: list[UnreadableLog] = []
    number = unread = 0
    for number, given in enumerate(run.files(), 1):
        unread += given.unread is not None
        file = given
        try:
            log = files.log_of(given, number)
            if log is None:
                continue
            file = log
            for batch in files.batches(file, number, origins):
                words = words_in(batch, start_words)
                settled = stamps.settled(ranks.settled(sections.settled(batch, words), words))
                files.feed(settled, words)
                clock.feed(settled)
        except UnreadableLog as error:
            if not (run.several or file.member):
                raise
            refused.append(error)
            warnings.append(f"left out: {error.message}")
    if refused and len(refused) == number - unread:
        raise refused[0]
    if number == unread:
        raise UnreadableLog(f"{run.name}: no logs")
    if files.skipped:
        warnings.append(f"{files.skipped} near-duplicate lines skipped")
    if files.long:
        warnings.append(f"{files.long} lines longer than {LONGEST_TEXT >> 10} KB were read in part")
    readings = (*files.readings, files.reader.reading())
    launcher = "torchrun" if origins.of_torchrun else None
    evidence = files.collected.evidence(files.reader.environment.world_size, matcher.collective_words)
    return ReadRuns(readings, files.stats, clock, launcher, tuple(warnings), evidence)


def words_in(lines: Iterable[Line], start_words: tuple[str, ...]) -> frozenset[str]:
    """-> which of the words for which some steps wait the texts of the lines hold, in letters of either kind.
    `start_words`: those of the lines with which a launch begins."""
    texts = "\n".join([line.text for line in lines])
    words, scanner = _scanner(start_words)
    return frozenset(words[index] for index in scanner.which(texts.encode("utf-8", "replace")))


@cache
def _scanner(start_words: tuple[str, ...]) -> tuple[tuple[str, ...], Scanner]:
    words = (*_WORDS, *start_words)
    return words, Scanner(lambda: [f"(?i){re.escape(word)}".encode() for word in words], once=True)


@dataclass(slots=True)
class _FilesReader:
    """Reads one file after the other; `reader` has the newest run, `readings` those before it."""

    patterns: Patterns
    matcher: Matcher
    run: Run
    trace: Trace | None
    reader: RunReader = field(init=False)
    collected: CollectedEvidence = field(default_factory=CollectedEvidence)
    readings: list[Reading] = field(default_factory=list)
    stats: Stats = field(default_factory=Stats)
    skipped: int = 0
    long: int = 0
    _by_lines: bool = False  # whether the lines of a file were set or ordered otherwise
    warnings: list[str] = field(default_factory=list)
    _last_log: str | None = None
    _end_of_last: Position = START

    def __post_init__(self) -> None:
        self.reader = RunReader(self.matcher)

    def log_of(self, file: LogFile, number: int) -> LogFile | None:
        """-> the file, where it is a log. Raises UnreadableLog."""
        several = self.run.several or file.member
        try:
            return self.collected.log_of(file, number, file.name if several else None)
        except NotRead as reason:
            name = f"{self.run.name}/{file.name}" if several else self.run.name
            raise UnreadableLog(f"{name}: {reason}") from reason

    def batches(self, file: LogFile, number: int, origins: FileOrigins) -> Iterator[list[Line]]:
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
            self.warnings.append(f"{file.name}: {source.warning}" if several else source.warning)
        where = replace(origins.of(file.name, several), log=file.part_of)
        if several:
            self.reader.environment.files[number] = where
        sampled = 0
        progressed: list[tuple[int, bytes]] = []  # lines that went by unkept, each with its number
        batch: list[Line] = []
        try:
            for more in self._lines(source, windows, where, above):
                if len(batch) >= _BATCH or len(windows.sampled) > sampled:
                    yield batch
                    progressed += self._sample(windows.sampled[sampled:], above)
                    batch, sampled = [], len(windows.sampled)
                batch += more
        except UnreadableLog:
            yield batch  # What precedes the place where a file is broken can still be read.
            raise
        yield batch
        for place, piece in windows.passing:
            for more in lines([(place, piece)], where, above, source.numbers, not source.rewritten):
                self.reader.read_facts(more)
        for more in lines(progressed, where, above, source.numbers, not source.rewritten) if progressed else ():
            self.reader.add_progress(more)
        self.stats = Stats(self.stats.bytes + windows.size, self.stats.lines + windows.lines)
        self._end_of_last = above.down(windows.lines)
        self.skipped += windows.skipped
        self.long += windows.long

    def _sample(self, pieces: Iterable[tuple[int, bytes]], above: Position) -> list[tuple[int, bytes]]:
        """-> of pieces that went by unkept, each with the number of its last line, the last lines of those that show
        progress."""
        environment, decode = self.reader.environment, partial(str, encoding="utf-8", errors="replace")
        shown = [(at, piece) for at, piece in pieces if environment.sample(above.down(at), decode(piece))]
        return [(at, piece[piece.rfind(b"\n", 0, -1) + 1 :]) for at, piece in shown]

    def _lines(self, source: Unwrapped, windows: Windows, where: FileOrigin, above: Position) -> Iterator[list[Line]]:
        """-> the lines of the windows of one file."""
        trace, read = self.trace, source.blocks
        if trace is None:
            return lines(windows.read(read), where, above, source.numbers, not source.rewritten)
        read = trace.through("read", "bytes", read, len, lambda block: block[:SAMPLE].decode("utf-8", "replace"))
        kept = trace.through(
            "scan and windows", "bytes kept", windows.read(read), lambda piece: len(piece[1]),
            lambda piece: f"from line {piece[0]:,}",
        )  # fmt: skip
        made = lines(kept, where, above, source.numbers, not source.rewritten)
        return trace.through("lines", "lines", made, len, lambda many: many[0].text[:SAMPLE])

    def _above(self, file: LogFile, number: int) -> Position:
        """-> the position above a file's first line; a piece of a rotated log goes on where the last ended."""
        goes_on = file.part_of is not None and file.part_of == self._last_log
        self._last_log = file.part_of
        return self._end_of_last if goes_on else Position(number, 0)

    def feed(self, lines: list[Line], words: frozenset[str]) -> None:
        """Gives lines of one file to the reader of the run; where another launch begins, to a new one."""
        start = 0
        for at in self.reader.environment.begins_at(lines, words) if lines and lines[0].file is None else ():
            self.reader.feed(lines[start:at])
            start = at
            if self.reader.ended or (self.reader.shows_a_run and self.matcher.launchers.begins_anew(lines[at].text)):
                self.readings.append(self.reader.reading())
                self.reader = RunReader(self.matcher, self.reader.repeated_frames)
        self.reader.feed(lines[start:])
