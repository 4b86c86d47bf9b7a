"""Which entries an event shows: an event in, `Match`es out, exact or near, the strongest first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import re2

from torchtriage.domain.entry import Entry, Kind, Sign
from torchtriage.domain.event import Event, EventSource, Raised, Where
from torchtriage.evidence.collective_words import CollectiveWords
from torchtriage.facts.document_signs import DocumentSigns
from torchtriage.facts.ending_signs import EndingSigns
from torchtriage.facts.line_facts import LineSigns
from torchtriage.lazy_regex import lazy_regex
from torchtriage.matching.area_marks import AreaMarks, OwnJobs
from torchtriage.matching.misspelled_exceptions import ExceptionNames
from torchtriage.matching.near_matches import Near, NearSigns
from torchtriage.matching.patterns import Patterns
from torchtriage.matching.prefilter import Seen
from torchtriage.parsing.registry import Kinds

EXACT, TITLE, CATCH_ALL, ECHO, NEAR, WEAK = 0.96, 0.8, 0.72, 0.6, 0.55, 0.42
_LOOKUP_ERRORS = frozenset(
    {"FileNotFoundError", "KeyError", "AttributeError", "ImportError", "ModuleNotFoundError", "IndexError"}
)
_MESSAGES = frozenset({"any", "exception", "line"})  # where signs look that see no frames
_LINES_KEPT = 4096
# …/distributed_c10d.py:93: UserWarning: … of Python's warnings module
_WARNING = r"\.pyx?:\d{1,6}: (?:[\w.]*Warning): "
_OF_LINES = frozenset({"line", "any"})
_LITERAL = lazy_regex(r"""[rf]?["']([^"'\\\\{\n]{4,200})""")  # "Could not import the extension.\n"
_NAME_WITHIN = 200  # characters of a text, in which its exception's name stands


@dataclass(frozen=True, slots=True)
class Match:
    """An entry that an event shows. `raised` is the exception of the chain that shows it; `near` says how near.

    `general`: any kind of program may print it, as its entry says, or as a broad sign saw no more than words. `sign` is
    the one that was found, None where a message is only near to it; `weight` says how much of it the text holds.
    """

    entry: Entry
    score: float
    weak: bool = False
    broad: bool = False
    weight: int = 0
    depth: int = 0
    raised: Raised | None = None
    near: Near | None = None
    general: bool = False
    sign: Sign | None = None

    @property
    def strength(self) -> tuple[bool, bool, bool, bool, int, int]:
        """Sorts the matches of one event: exact signs before broad ones and those before catch-alls, causes before
        echoes, inner before outer."""
        entry = self.entry
        return (not self.weak, not entry.catch_all, not self.broad, entry.kind is Kind.CAUSE, -self.depth, self.weight)


@dataclass(frozen=True, slots=True)
class EventPatterns:
    """An event with the patterns that its texts show: (pattern's number, depth in the chain, exception)."""

    event: Event
    hits: tuple[tuple[int, int, Raised | None], ...] = ()


class Matcher:
    """Finds the entries of events. `patterns_of` reads an event's texts, `matches` decides at the end of a run."""

    def __init__(self, patterns: Patterns) -> None:
        self._patterns = patterns
        self._near = NearSigns(patterns)
        self._exception_names = ExceptionNames(patterns)
        vocabulary = patterns.vocabulary
        self.area_marks, self.own_jobs = AreaMarks(vocabulary), OwnJobs(vocabulary)
        self._warning = re2.compile(f"{_WARNING}|{vocabulary.regex('run-goes-on')}")
        self._retry = re2.compile(vocabulary.regex("retry-messages"))
        self.collective_words = CollectiveWords(vocabulary)
        self._lines: dict[str, bool] = {}
        self.launchers = patterns.prefilter.signs.launchers
        self.ending_signs, self.document_signs = EndingSigns(vocabulary), DocumentSigns(vocabulary)

    def patterns_of(self, event: Event) -> EventPatterns:
        """-> the event with every pattern that its texts show."""
        if event.where is not Where.EXCEPTION:
            where = frozenset({"exit"}) if event.where is Where.EXIT else _OF_LINES
            return EventPatterns(event, tuple((index, 0, None) for index in self._patterns.found(event.text, where)))
        hits: list[tuple[int, int, Raised | None]] = []
        for depth, raised in enumerate(event.chain):
            if _is_failed_lookup(event.chain, depth):
                continue
            texts = ((raised.text, frozenset({"exception", "any"})), (frames_text(raised), frozenset({"frame"})))
            for text, where in texts:
                hits += [(index, depth, raised) for index in self._patterns.found(text, where)]
        return EventPatterns(event, tuple(hits))

    @property
    def patterns(self) -> Patterns:
        """The signs of all entries, by their numbers."""
        return self._patterns

    @property
    def extractors(self) -> Kinds:
        """All kinds of extractors."""
        return self._patterns.extractors

    def prefilter(self, texts: Iterable[str], settled: frozenset[int]) -> dict[str, Seen]:
        """-> what each text may show, except the facts in `settled`; those that show nothing are left out."""
        return self._patterns.prefilter.hints(texts, settled)

    def apart(self, shown: Sequence[Seen]) -> list[int]:
        """-> the places of the lines that must be looked at one by one, of many that show this."""
        return self._patterns.prefilter.apart(shown)

    @property
    def line_signs(self) -> LineSigns:
        """The signs of facts that lines are asked for."""
        return self._patterns.prefilter.signs

    def shows_sign(self, text: str, pointed: Iterable[int]) -> bool:
        """-> whether a bare line shows any sign at all, of those at which the prefilter points. Ranks print the same
        lines, so the answers are kept."""
        shows = self._lines.get(text)
        if shows is None:
            if len(self._lines) >= _LINES_KEPT:
                self._lines.clear()
            shows = self._lines[text] = self._patterns.shows_one(text, pointed)
        return shows

    def only_warns(self, event: Event) -> bool:
        """-> whether the event's line by itself shows signs of warnings, and no other, of every entry that the event
        names."""
        shown = [self._patterns.all[index] for index in self._patterns.found(event.line.text, _OF_LINES)]
        named = {self._patterns.all[index].entry.id for index, _, _ in self.patterns_of(event).hits}
        return all(pattern.sign.weak for pattern in shown) and named <= {pattern.entry.id for pattern in shown}

    def shows_whole_sign(self, event: Event) -> bool:
        """-> whether the event's texts show a whole sign, and not only a part of one."""
        shown = {index for index, _, _ in self.patterns_of(event).hits}
        return any(shown.issuperset(self._patterns.all[index].group) for index in shown)

    def matches(self, found: EventPatterns, everywhere: set[int]) -> list[Match]:
        """-> the entries that the event shows, strongest first; `everywhere` holds the patterns seen in the run."""
        best: dict[str, Match] = {}
        warned = self._is_warning(found.event)
        for index, depth, raised in found.hits:
            pattern = self._patterns.all[index]
            if pattern.group and (index != pattern.group[0] or not everywhere.issuperset(pattern.group)):
                continue
            entry, weak = pattern.entry, pattern.sign.weak or warned
            broad = pattern.sign.broad or entry.catch_all
            score = WEAK if weak else CATCH_ALL if broad else EXACT if entry.kind is Kind.CAUSE else ECHO
            if found.event.source is EventSource.TITLE:
                score = min(score, TITLE)  # A person's summary of an error that the log itself does not show.
            general = entry.general or (pattern.sign.broad and pattern.sign.where in _MESSAGES)
            text = raised.text if raised is not None else found.event.text
            weight = pattern.weight((frames_text(raised) if raised and pattern.sign.where == "frame" else text).lower())
            match = Match(entry, score, weak, broad, weight, depth, raised, general=general, sign=pattern.sign)
            match = self._with_spelling(match, text)
            if raised is not None and self.area_marks.excludes(entry.area, raised):
                continue
            if entry.id not in best or match.strength > best[entry.id].strength:
                best[entry.id] = match
        return sorted(best.values(), key=lambda match: match.strength, reverse=True)

    def _is_warning(self, event: Event) -> bool:
        """-> whether the line says that nothing ended: a warning of Python, or an exception that is met by a retry."""
        alone = event.source is EventSource.EXCEPTION_LINE  # with no traceback above it
        if (alone or event.where is Where.LINE) and self._warning.search(event.line.text if alone else event.text):
            return True
        of_line = alone or event.source in (EventSource.MATCHED_LINE, EventSource.QUOTED_ERROR)
        return of_line and bool(self._retry.search(event.line.text))

    def _with_spelling(self, match: Match, text: str) -> Match:
        """-> the match; only near where the exception's name is misspelled: somebody retyped the text."""
        typo = self._exception_names.misspelling(text[:_NAME_WITHIN])
        if typo is None or match.weak or match.broad:
            return match
        return replace(match, score=min(match.score, NEAR), near=Near(match.entry, 100.0, *typo, is_same=True))

    def near_match(self, event: Event) -> Match | None:
        """-> the entry whose message is nearly that of the event: wrapped, escaped, mistyped, reworded, cut."""
        for depth, raised in enumerate(event.chain):
            near = (
                self._near.nearest(raised.message, kind=raised.type)
                if not _is_failed_lookup(event.chain, depth)
                else None
            )
            if near is not None and not self.area_marks.excludes(near.entry.area, raised):
                general = near.entry.general
                return Match(near.entry, NEAR, broad=near.broad, depth=depth, raised=raised, near=near, general=general)
        return None


def _is_failed_lookup(chain: tuple[Raised, ...], depth: int) -> bool:
    """-> whether an exception only answered a question (is the file there? the key?), and what was done then failed:
    the next one of the chain was raised while this one was handled, and not by a `raise`. A program that ends for it
    (SystemExit) did raise on purpose. Of a `raise` of several lines Python before 3.8 shows the last one, a part of the
    message."""
    if depth + 1 >= len(chain) or chain[depth].type not in _LOOKUP_ERRORS or not chain[depth + 1].implicit:
        return False
    then = chain[depth + 1]
    if then.type == "SystemExit":
        return False
    code = then.frames[-1].code if then.frames else ""
    literal = _LITERAL.match(code)
    return bool(code) and not code.startswith("raise") and not (literal and literal[1] in then.message)


def frames_text(raised: Raised) -> str:
    """-> the frames as signs with `in: frame` see them, and the exception below them."""
    lines = [f'File "{frame.file}", in {frame.function}\n  {frame.code}' for frame in raised.frames]
    return "\n".join([*lines, raised.text]) if lines else ""
