"""Reads the lines of one run, gives each kept line to the extractors once, and returns a `Reading`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import dropwhile, islice, repeat
from operator import attrgetter

from torchtriage.domain.event import Event, EventSource
from torchtriage.domain.line import START, Line, Position
from torchtriage.facts import CollectedFacts
from torchtriage.facts.line_facts import start
from torchtriage.matching.matcher import Matcher
from torchtriage.matching.prefilter import NOTHING, LineHints
from torchtriage.parsing.extractor import SharedState
from torchtriage.parsing.repeated_frames import RepeatedFrames
from torchtriage.parsing.run_extractors import RunExtractors
from torchtriage.runs.context_lines import ContextLines
from torchtriage.runs.error_lines import ErrorLines
from torchtriage.runs.file_ends import FileEnds
from torchtriage.runs.findings import Findings, without_node_ranks
from torchtriage.runs.run_reading import Reading

HEAD_LINES = 2  # lines at the start of a log; the title that a person put above it is among them
MAX_PASTE_LINES = 300  # lines; a longer text is not a paste
MAX_SOURCE_LINES = 2000  # lines; a longer text is not looked at as a program's source
_BEGINS, _FACTS = attrgetter("begins"), attrgetter("facts")
_OF_AGENTS = frozenset({EventSource.ELASTIC_AGENT, EventSource.FIRST_FAILURE, EventSource.OTHER_FAILURE})


@dataclass(slots=True)
class RunReader:
    """Reads one run. Call `feed` with its lines in order, many at a time, and then `reading`."""

    matcher: Matcher
    repeated_frames: RepeatedFrames = field(default_factory=RepeatedFrames)  # frames of all runs in the files
    findings: Findings = field(init=False)
    facts: CollectedFacts = field(init=False)
    extractors: RunExtractors = field(init=False)
    file_ends: FileEnds = field(default_factory=FileEnds)
    ranks: set[int] = field(default_factory=set)  # ranks that a line names as its own
    head: list[Line] = field(default_factory=list)  # the first lines, beginning with the first one that has text
    last_position: Position = START
    ended: bool = False
    text: list[Line] | None = field(default_factory=list)  # all lines, as long as there are few
    above: ContextLines = field(default_factory=ContextLines)
    errors: ErrorLines = field(default_factory=ErrorLines)
    error_places: set[Position] = field(default_factory=set)  # marks of errors, not read yet
    _claimed: set[Position] = field(default_factory=set)  # positions of lines that an extractor read
    _above: str = ""  # the text of the last line

    def __post_init__(self) -> None:
        self.findings = Findings(self.matcher)
        self.facts = CollectedFacts(self.matcher.line_regexes)
        self.extractors = RunExtractors(self._shared(), self.matcher.extractors)

    def feed(self, lines: Sequence[Line]) -> None:
        """Reads lines. Most of them match nothing; these are only kept for later steps."""
        if not lines:
            return
        self._keep(lines)
        self.extractors.expect(lines)
        shown = self._shown(lines)
        wanted = [*self.matcher.apart(shown), len(lines)][::-1]
        read: list[tuple[Line, bool]] = []  # with attempts; True if an extractor or entry reads it
        while (at := len(read)) < len(lines):
            while wanted[-1] < at:
                wanted.pop()
            if at < wanted[-1] and not self.extractors.open:
                read += zip(self._read_quickly(lines[at : wanted[-1]], shown[at : wanted[-1]]), repeat(False))
            elif frames := self.extractors.read_ahead(lines, map(_BEGINS, islice(shown, at, None)), at):
                read += zip(self._claim(lines[at : at + frames], shown[at : at + frames]), repeat(True))
            else:
                read.append(self._read_line(lines[at], shown[at], lines[at - 1].text if at else self._above))
        self.file_ends.feed(read)
        if not self.error_places.isdisjoint([line.position for line in lines]):
            self._note_errors(read)
        self._above = lines[-1].text
        self.facts.feed(lines)
        self.ended = self.ended or bool(self.facts.good_ends)

    def _note_errors(self, read: Sequence[tuple[Line, bool]]) -> None:
        """Counts the lines that contain a mark of an error and that nobody else reads."""
        marked = [one for one in read if one[0].position in self.error_places]
        for line, known in marked:
            if not known:
                self.errors.add(line)
        self.error_places.difference_update([line.position for line, _ in marked])

    def _shown(self, lines: Sequence[Line]) -> list[LineHints]:
        """Returns what each line may show. All lines are scanned at once."""
        texts = [line.text for line in lines]
        starts = {start(line) for line in lines if line.raw is not line.text}
        seen = self.matcher.prefilter([*texts, *starts], self.facts.settled)
        for label in starts & seen.keys():
            self.facts.label(seen[label].facts)
        return list(map(seen.get, texts, repeat(NOTHING)))

    def read_facts(self, lines: Sequence[Line]) -> Iterator[Line]:
        """Reads only the line facts of lines that were not kept, and yields these lines. A line without a time gets the
        time of the line directly above it."""
        seen = self.matcher.prefilter([line.text for line in lines], self.facts.settled)
        time, last = None, START
        for line in lines:
            near = 0 <= line.position.lines_below(last) <= 1  # One log record can have several lines.
            time, last = line.time or (time if near else None), line.position
            bits = seen.get(line.text, NOTHING).line_facts
            timed = line if line.time == time else line._replace(time=time)
            if bits and self._belongs_to_run(line):
                self.facts.read(timed, bits)
            yield timed

    def read_errors(self, lines: Sequence[Line], count: int) -> None:
        """Counts `count` similar error lines that were not kept; `lines` are some of them. Lines that match a sign or
        belong to a traceback are left out."""
        own = [line for line in lines if self._belongs_to_run(line)]
        if not own or own[0].text[:1].isspace():
            return
        seen = self.matcher.prefilter([own[0].text], self.facts.settled).get(own[0].text, NOTHING)
        if not (seen.pointed and self.matcher.matches_any_sign(own[0].text, seen.pointed)):
            self.errors.add(own[0], count, own[1:])

    def _belongs_to_run(self, line: Line) -> bool:
        """Returns whether a line belongs to this run, and not to a run above it."""
        return bool(self.head) and line.position >= self.head[0].position

    def add_progress(self, lines: Sequence[Line]) -> None:
        """Adds progress lines that were not kept. Lines of a run above this one are not counted."""
        first = self.head[0].position if self.head else START
        self.facts.spread.add([line for line in lines if line.position >= first])

    def _read_quickly(self, lines: Sequence[Line], shown: list[LineHints]) -> Sequence[Line]:
        """Returns the lines with their attempts. These lines show only that the run continues."""
        if self.extractors.elastic.attempt or any(map(attrgetter("host"), lines)):
            lines = [self._with_attempt(line) for line in lines]
        self.facts.note_progress(lines, list(map(_FACTS, shown)))
        self.above.feed(lines)
        return lines

    def _with_attempt(self, line: Line) -> Line:
        """Returns the line with its attempt, and notes its host as one of the run's hosts."""
        line = self.extractors.with_attempt(line)
        if line.host is not None:
            self.facts.at(line.host, line.rank)
        return line

    def _claim(self, lines: Sequence[Line], shown: Sequence[LineHints]) -> Sequence[Line]:
        """Returns the lines, and marks them as read by an extractor."""
        if self.text is not None:
            self._claimed.update(line.position for line in lines)
        for line, seen in zip(lines, shown, strict=True):
            if seen.facts:
                self.facts.note(line, seen.facts, True)
        return lines

    def _read_line(self, line: Line, seen: LineHints, above: str) -> tuple[Line, bool]:
        """Returns the line with its attempt, and whether an extractor or an entry reads it. `above` is the text of the
        line before it."""
        wanted, known = self.extractors.wanted(line, seen.begins), False
        events: list[Event] = []
        if wanted:
            begins = line.stream not in self.extractors.open
            line, known, events = self.extractors.feed(line, above, wanted)
            if line.host is not None:
                self.facts.at(line.host, line.rank)
            if begins and (known or events):
                self.above.mark(line.position)
        else:
            line = self._with_attempt(line)
        if seen.line_facts and not known:
            self.facts.read(line, seen.line_facts)
        if known:
            self._claim([line], [seen])
        elif seen.facts:
            self.facts.note(line, seen.facts, False)
        unclaimed = not known
        if seen.pointed and not known and self.matcher.matches_any_sign(line.text, seen.pointed):
            known = True
            self.above.mark(line.position)
            self.findings.add([replace(Event.at(line, line.text, EventSource.MATCHED_LINE), fatal=False)])
        if unclaimed:
            self.above.feed([line])
        if events:
            self.findings.add(events)
            self.ended = self.ended or any(map(self._ends_run, events))
        return line, known

    def _keep(self, lines: Sequence[Line]) -> None:
        if len(self.head) < HEAD_LINES:
            new = lines if self.head else dropwhile(lambda line: not line.text.strip("\0 \t"), lines)
            self.head += islice(new, HEAD_LINES - len(self.head))
        self.last_position = lines[-1].position
        self.ranks.update([line.rank for line in lines if line.rank is not None])
        if self.text is not None:
            self.text += lines
            if len(self.text) > MAX_SOURCE_LINES:
                self.text = None

    @property
    def paste(self) -> tuple[Line, ...] | None:
        """All lines, if there are as few as a person pastes."""
        return None if self.text is None or len(self.text) > MAX_PASTE_LINES else tuple(self.text)

    @property
    def has_started(self) -> bool:
        """Whether the log shows more than the start of a launch."""
        shown = self.facts.progress or self.facts.good_ends or self.findings
        return bool(shown) or self.extractors.tracebacks.has_open

    def reading(self) -> Reading:
        """Returns what was read, after all lines were fed. Closes what is still open."""
        self.findings.add(self.extractors.close())
        findings = self.findings.found()
        if any(found.event.line.node is not None for found in findings if found.event.source in _OF_AGENTS):
            findings = without_node_ranks(findings)
        return Reading(
            self.matcher, findings, self.facts, self.extractors, frozenset(self.ranks), tuple(self.head),
            self.paste, frozenset(self._claimed), self.file_ends.ends(),
            self.last_position, self.findings.dropped, (), tuple(self.above.opening), self.above.kept(),
            errors=self.errors, text=None if self.text is None else tuple(self.text),
        )  # fmt: skip

    def _ends_run(self, event: Event) -> bool:
        """Returns whether an event ends a launch, so that a launch below it is another run."""
        if event.exception is not None:
            ended = event.exception.type.endswith(self.matcher.launchers.exceptions)
            return ended or event.source is EventSource.LAUNCHER
        return event.source in (EventSource.FIRST_FAILURE, EventSource.SLURM)

    def _shared(self) -> SharedState:
        launchers = self.matcher.launchers
        return SharedState(self.repeated_frames, launchers.frames, launchers.commands)
