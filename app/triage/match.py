"""Entries × events: which entries an event shows, exactly or nearly."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from rapidfuzz import fuzz, process

from app.domain.entry import Entry, Kind
from app.domain.event import Event, Raised, Where
from app.triage.masking import mask
from app.triage.patterns import Patterns

EXACT, CATCH_ALL, ECHO, NEAR, WEAK = 0.96, 0.72, 0.6, 0.55, 0.42
NEAR_ENOUGH = 92.0  # of 100; similarity of masked messages
_PROBES = frozenset(
    {"FileNotFoundError", "KeyError", "AttributeError", "ImportError", "ModuleNotFoundError", "IndexError"}
)
_LINES_KEPT = 4096
_SHORTEST_NEAR = 30  # characters; shorter messages are near to too much


@dataclass(frozen=True, slots=True)
class Match:
    """An entry that an event shows. `raised` is the exception of the chain that shows it; `near` tells how near."""

    entry: Entry
    score: float
    weak: bool = False
    weight: int = 0
    depth: int = 0
    raised: Raised | None = None
    near: str | None = None

    @property
    def strength(self) -> tuple[bool, bool, bool, int, int]:
        """Sorts the matches of one event: own entries before catch-alls, causes before echoes, inner before outer."""
        entry = self.entry
        return (not self.weak, not entry.catch_all, entry.kind is Kind.CAUSE, -self.depth, self.weight)


@dataclass(slots=True)
class Found:
    """An event with the patterns that its texts show: (pattern, depth in the chain, exception)."""

    event: Event
    hits: list[tuple[int, int, Raised | None]] = field(default_factory=list)


class Matcher:
    """Finds the entries of events. `look` reads one event's texts, `matches` decides when the whole run was read."""

    def __init__(self, patterns: Patterns) -> None:
        self._patterns = patterns
        self._near: dict[str, Entry] = {}
        self._lines: dict[str, bool] = {}
        for pattern in patterns.all:
            if pattern.sign.text and not pattern.sign.weak and len(pattern.sign.text) >= _SHORTEST_NEAR:
                self._near[mask(pattern.sign.text)] = pattern.entry

    def look(self, event: Event) -> Found:
        """-> the event with every pattern that its texts show."""
        found = Found(event)
        if event.where is not Where.EXCEPTION:
            where = frozenset({"exit"}) if event.where is Where.EXIT else frozenset({"line", "any"})
            found.hits = [(index, 0, None) for index in self._patterns.found(event.text, where)]
            return found
        for depth, raised in enumerate(event.chain):
            if _probed(event.chain, depth):
                continue
            texts = ((raised.text, frozenset({"exception", "any"})), (frames_text(raised), frozenset({"frame"})))
            for text, where in texts:
                found.hits += [(index, depth, raised) for index in self._patterns.found(text, where)]
        return found

    def line(self, text: str) -> bool:
        """-> whether a bare line shows any sign at all. Ranks print the same lines, so the answers are kept."""
        shows = self._lines.get(text)
        if shows is None:
            if len(self._lines) >= _LINES_KEPT:
                self._lines.clear()
            shows = self._lines[text] = bool(self._patterns.found(text, frozenset({"line", "any"})))
        return shows

    def matches(self, found: Found, everywhere: set[int]) -> list[Match]:
        """-> the entries that the event shows, strongest first; `everywhere` holds the patterns seen in the run."""
        best: dict[str, Match] = {}
        for index, depth, raised in found.hits:
            pattern = self._patterns.all[index]
            if pattern.group and (index != pattern.group[0] or not everywhere.issuperset(pattern.group)):
                continue
            entry, weak = pattern.entry, pattern.sign.weak
            score = WEAK if weak else CATCH_ALL if entry.catch_all else EXACT if entry.kind is Kind.CAUSE else ECHO
            match = Match(entry, score, weak, pattern.weight, depth, raised)
            if entry.id not in best or match.strength > best[entry.id].strength:
                best[entry.id] = match
        matches = sorted(best.values(), key=lambda match: match.strength, reverse=True)
        own = [match for match in matches if not match.entry.catch_all]
        if not own and found.event.where is Where.EXCEPTION and (near := self._nearly(found.event)):
            return [near, *matches]
        return matches

    def _nearly(self, event: Event) -> Match | None:
        """-> the entry whose message is nearly that of the event's exception: wrapped, mistyped, reworded."""
        for depth, raised in enumerate(event.chain):
            text = re.sub(r"\s+", " ", mask(raised.message))[:600]
            if len(text) < _SHORTEST_NEAR:
                continue
            best = process.extractOne(text, self._near.keys(), scorer=fuzz.partial_ratio, score_cutoff=NEAR_ENOUGH)
            if best is not None and len(text) >= 0.6 * len(best[0]):
                entry = self._near[best[0]]
                near = f"near match ({best[1]:.0f} of 100) with “{best[0][:120]}”"
                return replace(Match(entry, NEAR, depth=depth, raised=raised), near=near)
        return None


def _probed(chain: tuple[Raised, ...], depth: int) -> bool:
    """-> whether an exception only answered a question (is the file there? the key?), and what was done then failed:
    the next one of the chain was raised while this one was handled, and not by a `raise`."""
    if depth + 1 >= len(chain) or chain[depth].type not in _PROBES or not chain[depth + 1].implicit:
        return False
    frames = chain[depth + 1].frames
    return bool(frames) and bool(frames[-1].code) and not frames[-1].code.startswith("raise")


def frames_text(raised: Raised) -> str:
    """-> the frames as signs with `in: frame` see them, and the exception below them."""
    lines = [f'File "{frame.file}", in {frame.function}\n  {frame.code}' for frame in raised.frames]
    return "\n".join([*lines, raised.text]) if lines else ""
