"""Reads one run: every kept line goes through the extractors once, and findings remain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import dropwhile, islice, repeat
from operator import attrgetter

from torchtriage.causality.cascade import unexplained
from torchtriage.causality.event_roles import REREAD, ends_run, tells_no_cause, tells_of_a_child
from torchtriage.causality.findings import Finding, Findings
from torchtriage.causality.last_errors import LastWords
from torchtriage.causality.quoted_errors import LONGEST, alarming, passages, second_look, that_count
from torchtriage.causality.survived import ends_badly
from torchtriage.causality.titles import HEAD, heading, title
from torchtriage.domain.event import Event, EventSource
from torchtriage.domain.line import START, Line, Position
from torchtriage.facts import Environment
from torchtriage.facts.line_facts import start
from torchtriage.facts.log_classifier import is_of_training
from torchtriage.matching.matcher import Matcher
from torchtriage.matching.prefilter import NOTHING, Seen
from torchtriage.parsing.extractor import SharedState
from torchtriage.parsing.repeated_frames import RepeatedFrames
from torchtriage.parsing.run_extractors import RunExtractors

_OF_AGENTS = frozenset({EventSource.ELASTIC_AGENT, EventSource.FIRST_FAILURE, EventSource.OTHER_FAILURE})
_CUT = EventSource.CUT_TRACEBACK


@dataclass(slots=True)
class RunReading:
    """What was read of one run so far. Feed the lines in order, many at once, then `close`."""

    matcher: Matcher
    repeated_frames: RepeatedFrames = field(default_factory=RepeatedFrames)  # of all runs that the files hold
    findings: Findings = field(init=False)
    environment: Environment = field(init=False)
    extractors: RunExtractors = field(init=False)
    last_words: LastWords = field(default_factory=LastWords)
    ranks: set[int] = field(default_factory=set)  # that lines name as their own
    head: list[Line] = field(default_factory=list)  # the first lines, from the first one that has text
    last_position: Position = START
    ended: bool = False
    warnings: list[str] = field(default_factory=list)
    paste: list[Line] | None = field(default_factory=list)  # all lines, as long as they are few
    _claimed: set[Position] = field(default_factory=set)  # of those that an extractor read
    _above: str = ""  # the text of the last line

    def __post_init__(self) -> None:
        self.findings = Findings(self.matcher)
        self.environment = Environment(self.matcher.line_signs)
        self.extractors = RunExtractors(SharedState(self.repeated_frames), self.matcher.extractors)

    def feed(self, lines: Sequence[Line]) -> None:
        """Most lines show nothing: they are kept for what may need them later, and go no further."""
        if not lines:
            return
        self._keep(lines)
        self.extractors.expect(lines)
        texts = [line.text for line in lines]
        starts = {start(line) for line in lines if line.raw is not line.text}
        seen = self.matcher.prefilter([*texts, *starts], self.environment.settled)
        for told in starts & seen.keys():
            self.environment.label(seen[told].facts)
        self.last_words.feed(self._looked_at(lines, list(map(seen.get, texts, repeat(NOTHING)))))
        self._above = texts[-1]
        self.environment.feed(lines)
        self.ended = self.ended or bool(self.environment.well)

    def read_facts(self, lines: Sequence[Line]) -> None:
        """Takes the line facts of lines that go by unkept, and nothing else. Where a line has no time, that of the line
        above counts."""
        seen = self.matcher.prefilter([line.text for line in lines], self.environment.settled)
        time = None
        for line in lines:
            time = line.time or time
            bits = seen.get(line.text, NOTHING).line_facts
            if bits and self.head and line.position >= self.head[0].position:
                self.environment.read(line._replace(time=time), bits)

    def _looked_at(self, lines: Sequence[Line], shown: list[Seen]) -> list[tuple[Line, bool]]:
        """-> the lines with their attempts, each with whether an extractor or an entry reads it."""
        read: list[tuple[Line, bool]] = []
        wanted = [*self.matcher.apart(shown), len(lines)][::-1]
        begins = [seen.begins for seen in shown]
        while (at := len(read)) < len(lines):
            while wanted[-1] < at:
                wanted.pop()
            if at < wanted[-1] and not self.extractors.open:
                read += zip(self._pass_by(lines[at : wanted[-1]], shown[at : wanted[-1]]), repeat(False))
            elif frames := self.extractors.read_ahead(lines, begins, at):
                read += zip(self._claim(lines[at : at + frames], shown[at : at + frames]), repeat(True))
            else:
                read.append(self._look(lines[at], shown[at], lines[at - 1].text if at else self._above))
        return read

    def _pass_by(self, lines: Sequence[Line], shown: list[Seen]) -> Sequence[Line]:
        """-> the lines with their attempts; they show no more than that the run goes on."""
        if self.extractors.elastic.attempt or any(map(attrgetter("host"), lines)):
            lines = [self._with_attempt(line) for line in lines]
        self.environment.pass_by(lines, list(map(attrgetter("facts"), shown)))
        return lines

    def _with_attempt(self, line: Line) -> Line:
        """-> the line with its attempt; its host is one of the run's."""
        line = self.extractors.with_attempt(line)
        if line.host is not None:
            self.environment.at(line.host, line.rank)
        return line

    def _claim(self, lines: Sequence[Line], shown: Sequence[Seen]) -> Sequence[Line]:
        """-> the lines, known from now on as an extractor's."""
        if self.paste is not None:
            self._claimed.update(line.position for line in lines)
        for line, seen in zip(lines, shown, strict=True):
            if seen.facts:
                self.environment.note(line, seen.facts, True)
        return lines

    def _look(self, line: Line, seen: Seen, above: str) -> tuple[Line, bool]:
        """-> the line with its attempt, and whether an extractor or an entry reads it. `above`: the text of the line
        before it."""
        wanted, known = self.extractors.wanted(line, seen.begins), False
        events: list[Event] = []
        if wanted:
            line, known, events = self.extractors.feed(line, above, wanted)
            if line.host is not None:
                self.environment.at(line.host, line.rank)
        else:
            line = self._with_attempt(line)
        if seen.line_facts and not known:
            self.environment.read(line, seen.line_facts)
        if known:
            self._claim([line], [seen])
        elif seen.facts:
            self.environment.note(line, seen.facts, False)
        if seen.pointed and not known and self.matcher.shows_sign(line.text, seen.pointed):
            known = True
            self.findings.add([replace(Event.at(line, line.text, EventSource.MATCHED_LINE), fatal=False)])
        if events:
            self.findings.add(events)
            self.ended = self.ended or any(map(ends_run, events))
        return line, known

    def _keep(self, lines: Sequence[Line]) -> None:
        if len(self.head) < HEAD:
            told = lines if self.head else dropwhile(lambda line: not line.text.strip("\0 \t"), lines)
            self.head += islice(told, HEAD - len(self.head))
        self.last_position = lines[-1].position
        self.ranks.update(line.rank for line in lines if line.rank is not None)
        if self.paste is not None:
            self.paste += lines
            if len(self.paste) > LONGEST:
                self.paste = None

    def close(self) -> None:
        """Ends what is still open."""
        self.findings.add(self.extractors.close())
        if any(found.event.line.node is not None for found in self.findings if found.event.source in _OF_AGENTS):
            self.findings.give_nodes_back()
        told = title(self.head, pasted=self.paste is not None)
        below = (found.event for found in self.findings if told is None or found.event.lines != told.lines)
        silent = all(map(tells_no_cause, below))
        if told is not None and silent:
            self.findings.leave_out(told.line)
            self.findings.add([told])
            return
        if self.paste and silent and not self.environment.well:
            self._look_again(self.paste)
        if silent:
            self._hear_last_words()
            self._hear_heading()
        if self.is_quiet():
            self.findings.add(self.last_words.standing_still(self.environment))

    def _hear_heading(self) -> None:
        """Takes what went wrong from the heading over a traceback that was cut off before it said so."""
        cut = any(found.event.source == _CUT for found in self.findings)
        told = heading(self.head, self.paste is not None) if cut else None
        below = (found.event for found in self.findings if told is None or found.event.lines != told.lines)
        if told is not None and all(map(tells_no_cause, below)) and self.matcher.shows_whole_sign(told):
            self.findings.leave_out(told.line)
            self.findings.add([told])

    def _hear_last_words(self) -> None:
        """Takes errors that no entry knows from the end of a run of which a launcher at most says that it failed."""
        found = self.matched()
        weak = bool(self.environment.progress)  # Then no warning explains the run.
        named = [finding for finding in unexplained(found) if finding.match and not (weak and finding.match.weak)]
        if all(map(tells_of_a_child, named)):
            self.findings.add(self.last_words.events(self.environment, any(map(ends_badly, found))))

    def _look_again(self, paste: list[Line]) -> None:
        """Reads a short paste again, all but what launchers said; of a run that trained only what stands behind."""
        left = self.extractors.slurm.left
        paste, progress = that_count([line for line in paste if line.position not in left]), self.environment.progress
        since = progress[-1] if progress else START
        launchers = (finding.event for finding in self.findings if finding.event.source not in REREAD)
        known = {line.position for event in launchers for line in event.lines}
        known |= self._claimed if known else set()  # A launcher's traceback quotes its own code.
        rest = [line for line in paste if line.position > since and line.position not in known]
        again = (event for event in second_look(rest) if self.matcher.shows_whole_sign(event))
        self.findings.add(event for event in again if not self.matcher.only_warns(event))
        if not progress and not self.environment.foreign and not self.findings.matched():
            near = [event for event in passages(paste) if self.matcher.near_match(event)]
            self.findings.add(near or alarming(paste))

    def is_blank(self) -> bool:
        """-> whether not a single line with text was read."""
        return not self.head

    def is_empty(self) -> bool:
        """-> whether nothing was read but a launcher's banner."""
        return not self.environment.progress and not self.environment.well and self.is_quiet()

    def is_quiet(self) -> bool:
        """-> whether nothing was found."""
        return not any(True for _ in self.findings)

    def matched(self) -> list[Finding]:
        """-> what was found, with the entries that count in a log of its field."""
        return self.findings.matched(self.is_of_training(), self.environment.foreign > 0)

    def is_of_training(self) -> bool:
        """-> whether the log is one of a training run, or a paste that may well be."""
        return is_of_training(self.environment, self.paste, self._claimed)
