"""Reads the files of a run as a stream and returns a `Reading` for each launch.

Each file is read in blocks, scanned, split into lines and turned into events. Reports of tools next to the logs are
read separately, so that their steps, times and ranks are not mistaken for those of the run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial

from torchtriage.domain.evidence import RunEvidence
from torchtriage.domain.line import START, Line, Position
from torchtriage.domain.trace import SAMPLE, Trace
from torchtriage.domain.verdict import Stats
from torchtriage.errors import UnreadableLog
from torchtriage.evidence.collect import CollectedEvidence
from torchtriage.evidence.reports.bug_report import MAX_BYTES, BugReport
from torchtriage.evidence.reports.readers import READERS, host_in_name, lines_of
from torchtriage.matching.matcher import Matcher
from torchtriage.matching.patterns import Patterns
from torchtriage.reading import process_sections, rank_numbering
from torchtriage.reading.blocks import blocks
from torchtriage.reading.file_types import REPORTS, FileForm
from torchtriage.reading.inferred_times import TimeInference
from torchtriage.reading.lines import lines
from torchtriage.reading.prefixes.paths import FileOrigin, FileOrigins
from torchtriage.reading.process_sections import Sections
from torchtriage.reading.rank_numbering import Ranks
from torchtriage.reading.record_lines import MAX_TEXT_LENGTH
from torchtriage.reading.scan import Scanner
from torchtriage.reading.skipped_lines import NumberedPiece, joined, last_line
from torchtriage.reading.sources import LogFile, Run
from torchtriage.reading.unwrap import Unwrapped, unwrap
from torchtriage.reading.whole_files import NotRead
from torchtriage.reading.windows import WHOLE, Windows
from torchtriage.runs.clock import Clock
from torchtriage.runs.findings import Finding
from torchtriage.runs.run_reader import RunReader
from torchtriage.runs.run_reading import Reading

_BATCH = 256  # lines at least that are processed together
_BESIDE = 1 << 30  # the file number of the first report: in the order of the run, reports come after all logs
# Most lines contain no word that a later step waits for, so that one scan looks for all of these words.
_WORDS = (*rank_numbering.WORDS, *rank_numbering.AGENT, *process_sections.MARKS)


@dataclass(frozen=True, slots=True)
class ReadRuns:
    """What was read from the files of a run.

    It has a reading for each launch, the newest last, and a clock that says which time each part has. It also has the
    findings of reports next to the logs, and the form of each report by its file number. If there are no logs, the
    reports are the reading, and `alone` are their forms.
    """

    readings: tuple[Reading, ...]
    stats: Stats
    clock: Clock
    launcher: str | None  # that the names of the files show
    warnings: tuple[str, ...]
    evidence: RunEvidence
    report_findings: tuple[Finding, ...] = ()
    forms: Mapping[int, FileForm] = field(default_factory=dict)
    alone: frozenset[FileForm] = frozenset()


def read_runs(run: Run, patterns: Patterns, matcher: Matcher, trace: Trace | None = None) -> ReadRuns:
    """Returns what was read from all files. Raises UnreadableLog if there is no file, or if none can be read."""
    files = _FilesReader(patterns, matcher, run, trace)
    origins, clock = FileOrigins(run.names), Clock()
    sections, ranks, stamps = Sections(), Ranks(), TimeInference()
    warnings, start_words = files.warnings, matcher.launchers.start_words
    refused: list[UnreadableLog] = []
    number = unread = logs = 0
    for number, given in enumerate(run.files(), 1):
        unread += given.unread is not None
        file = given
        try:
            taken = files.log_of(given, number, origins)
            if taken is None:
                continue
            file = taken
            if file.form in REPORTS:
                files.read_report(file, number, origins)
                continue
            logs += 1
            for batch in files.batches(file, number, origins):
                words = words_in(batch, start_words)
                settled = stamps.with_times(ranks.settled(sections.settled(batch, words), words))
                files.feed(settled, words)
                clock.feed(settled)
        except UnreadableLog as error:
            if not (run.several or file.member):
                raise
            refused.append(error)
            files.skip_file(error, was_listed=file is not given)
    if refused and len(refused) == number - unread:
        raise refused[0]
    if number == unread:
        raise UnreadableLog(f"{run.name}: no logs")
    files.warn_of_skipped_lines()
    alone: frozenset[FileForm] = frozenset()
    if files.forms and not logs:  # then only the reports describe the run
        alone = frozenset(files.forms.values())
        files.reader, clock, files.forms = files.reports, files.report_clock, {}
    report_findings = files.reports.reading().findings if files.forms else ()
    readings = (*files.readings, files.reader.reading())
    launcher = "torchrun" if origins.of_torchrun else None
    evidence = files.collected.evidence(files.reader.facts.world_size, matcher.collective_words)
    return ReadRuns(
        readings, files.stats, clock, launcher, tuple(warnings), evidence, report_findings, files.forms, alone
    )


def words_in(lines: Iterable[Line], start_words: tuple[str, ...]) -> frozenset[str]:
    """Returns the words that the lines contain, out of those that later steps look for. Upper and lower case are equal.
    `start_words` are the words of lines with which a launch begins."""
    texts = "\n".join([line.text for line in lines])
    words, scanner = _scanner(start_words)
    return frozenset(words[index] for index in scanner.which(texts.encode("utf-8", "replace")))


@cache
def _scanner(start_words: tuple[str, ...]) -> tuple[tuple[str, ...], Scanner]:
    words = (*_WORDS, *start_words)
    return words, Scanner(lambda: [f"(?i){re.escape(word)}".encode() for word in words], once=True)


@dataclass(slots=True)
class _FilesReader:
    """Reads one file after the other. `reader` reads the newest run, `readings` are the runs before it, and `reports`
    reads the reports of tools."""

    patterns: Patterns
    matcher: Matcher
    run: Run
    trace: Trace | None
    reader: RunReader = field(init=False)
    reports: RunReader = field(init=False)
    forms: dict[int, FileForm] = field(default_factory=dict)
    collected: CollectedEvidence = field(default_factory=CollectedEvidence)
    readings: list[Reading] = field(default_factory=list)
    stats: Stats = field(default_factory=Stats)
    report_clock: Clock = field(default_factory=Clock)
    _skipped: int = 0
    _long: int = 0
    _by_lines: bool = False  # whether a file was wrapped in another format, or its lines were in another order
    warnings: list[str] = field(default_factory=list)
    error_places: set[Position] = field(default_factory=set)  # of error lines that are not read yet
    _last_log: str | None = None
    _end_of_last: Position = START

    def __post_init__(self) -> None:
        self.reader = RunReader(self.matcher, error_places=self.error_places)
        self.reports = RunReader(self.matcher)

    def skip_file(self, error: UnreadableLog, was_listed: bool) -> None:
        """Adds a warning that says why a file is left out, and corrects its entry if it was listed as a log."""
        self.warnings.append(f"left out: {error.message}")
        if was_listed:
            self.collected.refuse(error.message.partition(": ")[2] or error.message)

    def read_report(self, file: LogFile, number: int, origins: FileOrigins) -> None:
        """Reads the report of a tool. Raises UnreadableLog."""
        self.forms[_BESIDE + number] = file.form
        several = self.run.several or file.member
        host = origins.of(file.name, several).host or host_in_name(file.form, file.name)
        if file.form is FileForm.BUG_REPORT:
            self._read_bug_report(file, number, origins, host)
        elif file.form in READERS:
            data = b"".join(file.chunks())  # at most MAX_BYTES; a larger file is read as a log
            self._read_statements(file, file.form, data, Position(_BESIDE + number, 0), host)
            self.stats = Stats(self.stats.bytes + len(data), self.stats.lines + data.count(b"\n"))
        else:
            self._read_lines(file, number, origins, host)

    def _read_bug_report(self, file: LogFile, number: int, origins: FileOrigins, host: str | None) -> None:
        report = BugReport(file.chunks(), file.name)
        host = report.host or host
        self._read_lines(replace(file, chunks=report.kernel_lines), number, origins, host)
        if report.smi:
            self._read_statements(file, FileForm.NVIDIA_SMI, report.smi, self._end_of_last, host, report.smi_from)
        if report.cut:
            self.warnings.append(f"{file.name}: {file.form}: only its first {MAX_BYTES >> 20} MB were read")

    def _read_lines(self, file: LogFile, number: int, origins: FileOrigins, host: str | None) -> None:
        stamps = TimeInference()
        for batch in self.batches(file, number, origins, self.reports, host):
            dated = stamps.with_times(batch)
            self.reports.feed(dated)
            self.report_clock.feed(dated)

    def _read_statements(
        self, file: LogFile, form: FileForm, data: bytes, above: Position, host: str | None, first: int = 1
    ) -> None:
        """Reads the statements of one tool. `first` is the number of its first line in the file."""
        several = self.run.several or file.member
        lines, warning = lines_of(form, data, above, file.name if several else None, host, first)
        if warning:
            self.warnings.append(f"{file.name}: {warning}" if several else warning)
        for start in range(0, len(lines), _BATCH):
            self.reports.feed(lines[start : start + _BATCH])
        self.report_clock.feed(lines)

    def warn_of_skipped_lines(self) -> None:
        """Adds a warning if lines were skipped or cut."""
        if self._skipped:
            self.warnings.append(f"{self._skipped} near-duplicate lines skipped")
        if self._long:
            self.warnings.append(f"{self._long} lines longer than {MAX_TEXT_LENGTH >> 10} KB were read in part")

    def log_of(self, file: LogFile, number: int, origins: FileOrigins) -> LogFile | None:
        """Returns the file if it is a log, else None. Raises UnreadableLog."""
        several = self.run.several or file.member
        try:
            host = origins.of(file.name, several).host or host_in_name(FileForm.FLIGHT_RECORDER, file.name)
            return self.collected.log_of(file, number, file.name if several else None, host)
        except NotRead as reason:
            name = f"{self.run.name}/{file.name}" if several else self.run.name
            raise UnreadableLog(f"{name}: {reason}") from reason

    def batches(
        self,
        file: LogFile,
        number: int,
        origins: FileOrigins,
        reader: RunReader | None = None,
        host: str | None = None,
    ) -> Iterator[list[Line]]:
        """Yields the kept lines of one file, many at once. Lines that are not kept are sampled for progress. `reader`
        is set if the file is a report about `host` and not a log."""
        above = self._above(file, number) if reader is None else Position(_BESIDE + number, 0)
        is_report = reader is self.reports
        reader = reader or self.reader
        several = self.run.several or file.member
        name = f"{self.run.name}/{file.name}" if several else self.run.name
        windows = Windows(
            self.patterns.blocks, self.patterns.wide, self.patterns.confirms, number, self.patterns.latest,
            self.patterns.errors,
        )  # fmt: skip
        # One program wrote these thousands of files, so the first ones show whether their lines are wrapped or
        # reordered.
        source = unwrap(blocks(file.chunks(), name), self._by_lines or number <= WHOLE)
        self._by_lines = self._by_lines or source.by_lines
        if source.warning:
            self.warnings.append(f"{file.name}: {source.warning}" if several else source.warning)
        where = replace(origins.of(file.name, several), log=file.part_of)
        if file.form in REPORTS:  # a report has no rank, even if its file name contains a number
            where = replace(where, host=host, rank=None, local_rank=None, node=None)
        if several:
            reader.facts.files[above.file] = where
        sampled = 0
        progressed: list[tuple[int, bytes]] = []  # progress lines that were not kept, each with its number
        batch: list[Line] = []
        try:
            for more in self._lines(source, windows, where, above):
                if windows.errors:
                    self.error_places.update(map(above.down, windows.errors))
                    windows.errors.clear()
                if len(batch) >= _BATCH or len(windows.sampled) > sampled:
                    yield batch
                    reader = reader if is_report else self.reader  # A launch in the batch has begun another run.
                    progressed += self._sample(windows.sampled[sampled:], above, reader)
                    batch, sampled = [], len(windows.sampled)
                batch += more
        except UnreadableLog:
            yield batch  # What precedes the damaged part of a file can still be read.
            raise
        yield batch
        reader = reader if is_report else self.reader
        self._read_skipped(
            windows,
            reader,
            partial(lines, file_origin=where, above=above, numbers=source.numbers, verbatim=not source.rewritten),
            above,
        )
        for more in lines(progressed, where, above, source.numbers, not source.rewritten) if progressed else ():
            reader.add_progress(more)
        self.stats = Stats(self.stats.bytes + windows.size, self.stats.lines + windows.lines)
        self._end_of_last = above.down(windows.lines)
        self._skipped += windows.skipped
        self._long += windows.long

    def _read_skipped(
        self,
        windows: Windows,
        reader: RunReader,
        lines_of: Callable[[list[NumberedPiece]], Iterator[list[Line]]],
        above: Position,
    ) -> None:
        """Reads lines that were not kept but mention checkpoints or errors."""
        errors = [(kind.count, kind.samples) for kind in windows.passing_errors]
        pieces = [*windows.passing, *(piece for _, samples in errors for piece in samples)]
        if not pieces:
            return
        read = (line for more in lines_of(list(joined(pieces))) for line in reader.read_facts(more))
        places = {above.down(last_line(piece)) for _, samples in errors for piece in samples}
        found = {line.position: line for line in read if line.position in places}
        for count, samples in errors:
            known = {place: found[place] for piece in samples if (place := above.down(last_line(piece))) in found}
            reader.read_errors(list(known.values()), count)

    def _sample(
        self, pieces: Iterable[tuple[int, bytes]], above: Position, reader: RunReader
    ) -> list[tuple[int, bytes]]:
        """Returns the last line of each piece that shows progress, with its number. The pieces were not kept; each
        comes with the number of its last line."""
        facts, decode = reader.facts, partial(str, encoding="utf-8", errors="replace")
        shown = [(at, piece) for at, piece in pieces if facts.sample(above.down(at), decode(piece))]
        return [(at, piece[piece.rfind(b"\n", 0, -1) + 1 :]) for at, piece in shown]

    def _lines(self, source: Unwrapped, windows: Windows, where: FileOrigin, above: Position) -> Iterator[list[Line]]:
        """Returns the lines of the windows of one file."""
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
        """Returns the position above a file's first line. A piece of a rotated log continues at the end of the piece
        before it."""
        goes_on = file.part_of is not None and file.part_of == self._last_log
        self._last_log = file.part_of
        return self._end_of_last if goes_on else Position(number, 0)

    def feed(self, lines: list[Line], words: frozenset[str]) -> None:
        start = 0
        for at in self.reader.facts.begins_at(lines, words) if lines and lines[0].file is None else ():
            self.reader.feed(lines[start:at])
            start = at
            if self.reader.ended or (self.reader.has_started and self.matcher.launchers.restarts(lines[at].text)):
                self.readings.append(self.reader.reading())
                self.reader = RunReader(self.matcher, self.reader.repeated_frames, error_places=self.error_places)
        self.reader.feed(lines[start:])
