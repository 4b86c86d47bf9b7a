"""Finds the entries that match an event, exactly or nearly, the strongest first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import re2

from torchtriage.domain.entry import Entry, Kind, Sign
from torchtriage.domain.event import Event, EventSource, Raised, Where
from torchtriage.evidence.collective_vocabulary import CollectiveVocabulary
from torchtriage.facts.document_regexes import DocumentRegexes
from torchtriage.facts.ending_regexes import EndingRegexes
from torchtriage.facts.line_facts import LineRegexes
from torchtriage.lazy_regex import lazy_regex
from torchtriage.matching.area_detection import AreaMarks, OwnJobs
from torchtriage.matching.misspelled_exceptions import ExceptionNames
from torchtriage.matching.near_matches import Near, NearMatcher
from torchtriage.matching.patterns import Patterns
from torchtriage.matching.prefilter import LineHints
from torchtriage.parsing.registry import Kinds

EXACT, TITLE, CATCH_ALL, ECHO, NEAR, WEAK = 0.96, 0.8, 0.72, 0.6, 0.55, 0.42
_LOOKUP_ERRORS = frozenset(
    {"FileNotFoundError", "KeyError", "AttributeError", "ImportError", "ModuleNotFoundError", "IndexError"}
)
_MESSAGES = frozenset({"any", "exception", "line"})  # values of `search_in` for signs that are not searched in frames
_LINES_KEPT = 4096
# …/distributed_c10d.py:93: UserWarning: … from Python's warnings module
_WARNING = r"\.pyx?:\d{1,6}: (?:[\w.]*Warning): "
_OF_LINES = frozenset({"line", "any"})
_LITERAL = lazy_regex(r"""[rf]?["']([^"'\\\\{\n]{4,200})""")  # "Could not import the extension.\n"
_NAME_WITHIN = 200  # the exception's name must be in this many first characters of a text


@dataclass(frozen=True, slots=True)
class Match:
    """An entry that matches an event. `raised` is the exception of the chain that matches. `near` describes a near
    match.

    `general` is true if any kind of program may print the message: the entry says so, or a broad sign matched only by
    its words. `sign` is the sign that matched, or None for a near match. `weight` is the number of characters of the
    sign that the text contains.
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
        """Sort key for the matches of one event: exact signs before broad ones, both before catch-all entries; causes
        before echoes; inner before outer exceptions."""
        entry = self.entry
        return (not self.weak, not entry.catch_all, not self.broad, entry.kind is Kind.CAUSE, -self.depth, self.weight)


@dataclass(frozen=True, slots=True)
class EventPatterns:
    """An event with the patterns that match its texts, each as (index of the pattern, depth in the chain,
    exception)."""

    event: Event
    hits: tuple[tuple[int, int, Raised | None], ...] = ()


class Matcher:
    """Finds the entries of events. Call `patterns_of` for each event while reading, and `matches` at the end of the
    run."""

    def __init__(self, patterns: Patterns) -> None:
        self._patterns = patterns
        self._near = NearMatcher(patterns)
        self._exception_names = ExceptionNames(patterns)
        vocabulary = patterns.vocabulary
        self.area_marks, self.own_jobs = AreaMarks(vocabulary), OwnJobs(vocabulary)
        self._warning = re2.compile(f"{_WARNING}|{vocabulary.regex('run-goes-on')}")
        self._retry = re2.compile(vocabulary.regex("retry-messages"))
        self.collective_words = CollectiveVocabulary(vocabulary)
        self._lines: dict[str, bool] = {}
        self._clean_up = lazy_regex(vocabulary.regex("clean-up-functions"))
        self.carriers, self.ends_itself = map(lazy_regex, map(vocabulary.regex, ("carrier-exceptions", "ends-itself")))
        self.launchers = patterns.prefilter.regexes.launchers
        self.ending_regexes, self.document_regexes = EndingRegexes(vocabulary), DocumentRegexes(vocabulary)

    def patterns_of(self, event: Event) -> EventPatterns:
        """Returns the event with all patterns that match its texts."""
        if event.where is not Where.EXCEPTION:
            where = frozenset({"exit"}) if event.where is Where.EXIT else _OF_LINES
            return EventPatterns(event, tuple((index, 0, None) for index in self._patterns.found(event.text, where)))
        hits: list[tuple[int, int, Raised | None]] = []
        for depth, raised in enumerate(event.chain):
            if self._is_beside_failure(event.chain, depth):
                continue
            texts = ((raised.text, frozenset({"exception", "any"})), (frames_text(raised), frozenset({"frame"})))
            for text, where in texts:
                hits += [(index, depth, raised) for index in self._patterns.found(text, where)]
        return EventPatterns(event, tuple(hits))

    @property
    def patterns(self) -> Patterns:
        """The signs of all entries, by index."""
        return self._patterns

    @property
    def extractors(self) -> Kinds:
        """The kinds of extractors."""
        return self._patterns.extractors

    def prefilter(self, texts: Iterable[str], settled: frozenset[int]) -> dict[str, LineHints]:
        """Returns what each text may match, except the facts in `settled`. Texts that match nothing are left out."""
        return self._patterns.prefilter.hints(texts, settled)

    def apart(self, shown: Sequence[LineHints]) -> list[int]:
        """Returns the indexes of the lines that must be read one by one, out of many with these hints."""
        return self._patterns.prefilter.apart(shown)

    @property
    def line_regexes(self) -> LineRegexes:
        """The signs of facts that are searched in lines."""
        return self._patterns.prefilter.regexes

    def matches_any_sign(self, text: str, pointed: Iterable[int]) -> bool:
        """Returns whether a line matches any of the signs that the prefilter proposes. Results are cached, because
        ranks print the same lines."""
        shows = self._lines.get(text)
        if shows is None:
            if len(self._lines) >= _LINES_KEPT:
                self._lines.clear()
            shows = self._lines[text] = self._patterns.shows_one(text, pointed)
        return shows

    def is_only_warning(self, event: Event) -> bool:
        """Returns whether the event's line alone, for every entry that matches the event, matches only signs of
        warnings."""
        shown = [self._patterns.all[index] for index in self._patterns.found(event.line.text, _OF_LINES)]
        named = {self._patterns.all[index].entry.id for index, _, _ in self.patterns_of(event).hits}
        return all(pattern.sign.weak for pattern in shown) and named <= {pattern.entry.id for pattern in shown}

    def matches_complete_sign(self, event: Event) -> bool:
        """Returns whether the event's texts match a complete sign, not only a part of an `all` sign."""
        shown = {index for index, _, _ in self.patterns_of(event).hits}
        return any(shown.issuperset(self._patterns.all[index].group) for index in shown)

    def matches(self, found: EventPatterns, everywhere: set[int]) -> list[Match]:
        """Returns the entries that match the event, strongest first. `everywhere` has the patterns found anywhere in
        the run."""
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
                # The text is a person's summary of an error that the log itself does not show.
                score = min(score, TITLE)
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
        """Returns whether the line reports something that ended nothing: a Python warning, or an exception that is
        retried."""
        alone = event.source is EventSource.EXCEPTION_LINE  # without a traceback above it
        if (alone or event.where is Where.LINE) and self._warning.search(event.line.text if alone else event.text):
            return True
        of_line = alone or event.source in (EventSource.MATCHED_LINE, EventSource.QUOTED_ERROR)
        return of_line and bool(self._retry.search(event.line.text))

    def _with_spelling(self, match: Match, text: str) -> Match:
        """Returns the match, turned into a near match if the exception's name is misspelled. Then somebody retyped the
        text."""
        typo = self._exception_names.misspelling(text[:_NAME_WITHIN])
        if typo is None or match.weak or match.broad:
            return match
        return replace(match, score=min(match.score, NEAR), near=Near(match.entry, 100.0, *typo, is_same=True))

    def near_match(self, event: Event) -> Match | None:
        """Returns the entry whose message is similar to the event's: wrapped, escaped, mistyped, reworded or cut."""
        for depth, raised in enumerate(event.chain):
            near = (
                self._near.nearest(raised.message, kind=raised.type)
                if not self._is_beside_failure(event.chain, depth)
                else None
            )
            if near is not None and not self.area_marks.excludes(near.entry.area, raised):
                general = near.entry.general
                return Match(near.entry, NEAR, broad=near.broad, depth=depth, raised=raised, near=near, general=general)
        return None

    def _is_beside_failure(self, chain: tuple[Raised, ...], depth: int) -> bool:
        """Returns whether an exception of a chain is not the failure: the clean-up after an earlier exception raised
        it, or it only answered a question of the code that then failed."""
        if self._cleans_up(chain, depth):
            return True
        return not self._cleans_up(chain, depth + 1) and _is_failed_lookup(chain, depth)

    def _cleans_up(self, chain: tuple[Raised, ...], depth: int) -> bool:
        """Returns whether a clean-up function raised this exception while an earlier one was being handled."""
        if depth >= len(chain) or not chain[depth].implicit:
            return False
        return any(self._clean_up.search(f"{frame.file}:{frame.function}") for frame in chain[depth].frames)


def _is_failed_lookup(chain: tuple[Raised, ...], depth: int) -> bool:
    """Returns whether an exception of a chain only answered a question (does the file exist? the key?), and the code
    that handled it then failed. That is so if the next exception was raised while this one was handled, but not by a
    `raise` statement. SystemExit does not count, because it is raised on purpose. Before Python 3.8, a traceback shows
    the last line of a multi-line `raise`, which is part of the message."""
    if depth + 1 >= len(chain) or chain[depth].type not in _LOOKUP_ERRORS or not chain[depth + 1].implicit:
        return False
    then = chain[depth + 1]
    if then.type == "SystemExit":
        return False
    code = then.frames[-1].code if then.frames else ""
    literal = _LITERAL.match(code)
    return bool(code) and not code.startswith("raise") and not (literal and literal[1] in then.message)


def frames_text(raised: Raised) -> str:
    """Returns the text that signs with `search_in: frame` search: the frames and the exception below them."""
    lines = [f'File "{frame.file}", in {frame.function}\n  {frame.code}' for frame in raised.frames]
    return "\n".join([*lines, raised.text]) if lines else ""
