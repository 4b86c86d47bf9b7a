"""Near matches: a message in, the entry whose message it is apart from wrapping, quoting, escapes, typos or a cut
out."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from math import log
from pathlib import Path
from typing import NamedTuple

from torchtriage.domain.entry import Entry
from torchtriage.lazy_regex import lazy_regex
from torchtriage.matching import masking, patterns
from torchtriage.matching.masking import mask
from torchtriage.matching.patterns import Pattern, Patterns

NEAR_ENOUGH = 92.0  # of 100; bench/near_matches.py measures what other values find and what they get wrong
AHEAD = 3.0  # by so much the best entry must be nearer than the next one
SHORTEST = 30  # characters; shorter messages are near to too much
LONGEST = 600  # characters of a message that are compared
_LEAST_COVERED = 0.6  # of the entry's message; what was cut further can be anybody's
_LONG_ENOUGH = 100  # characters; so much of a message is its own, whatever was cut off
_SHORTEST_PIECE = 14  # characters of a message that was cut inside a word
_FEWEST_WORDS = 4  # that both have
_MOST_COMPARED = 12  # messages that share the most words with the log's
_LONGEST_DIFFERENCE = 60  # characters that are shown
_TYPE = lazy_regex(r"^(?:\[[\w-]+\]: ?)*(?:\w+\.)*\w*(?:Error|Exception|Interrupt)\s?: ?")
# What every internal assertion says, so that it makes no two of them alike.
_ASSERTED = lazy_regex(r" ?INTERNAL ASSERT FAILED at [^\n]{0,300}(?:please report a bug to PyTorch\.?)?")
_QUOTES = str.maketrans("“”‘’«»\u00a0", '""\'\'"" ')
_WORD = lazy_regex(r"[^\W\d_]{3,}")
_ANYWHERE = frozenset({"any", "exception", "line"})


@dataclass(frozen=True, slots=True)
class Near:
    """An entry that a message nearly shows: how near (of 100), what the log has and what the entry has in its place;
    both are empty where only breaks, quotes and escapes differ. `broad`: only a broad sign of the entry shows then.
    `is_same`: it is the entry's message for sure, as a sign of the entry shows apart from that, or the log was cut
    inside of a word of it."""

    entry: Entry
    similarity: float
    log: str = ""
    expected: str = ""
    broad: bool = False
    is_same: bool = False


class _Message(NamedTuple):
    entry: Entry
    text: str
    words: frozenset[str]


class NearSigns:
    """The messages of all entries, to be compared with one that shows no sign; they are read when first needed."""

    def __init__(self, patterns: Patterns) -> None:
        self._patterns = patterns
        # A run asks several times, and runs ask of the same messages.
        self._compared = lru_cache(maxsize=1024)(self._compare)

    def nearest(self, text: str, threshold: float = NEAR_ENOUGH, kind: str = "") -> Near | None:
        """-> the entry whose message `text` nearly is, else None; `kind`: the type of the exception that bears it."""
        plain = tidied(text)
        # A chat breaks a line between words, a terminal at its edge.
        for joined in (plain, tidied(text.replace("\n", ""))) if plain != text else ():
            if shown := self._shown(f"{kind}: {joined}" if kind else joined):
                return Near(shown.entry, 100.0, broad=shown.sign.broad, is_same=True)
        return self._compared(comparable(plain), threshold)

    def _compare(self, query: str, threshold: float) -> Near | None:
        words = frozenset(_WORD.findall(query))
        if len(query) < SHORTEST or len(words) < _FEWEST_WORDS:
            return self._cut_message(query)
        return self._most_similar(query, words, threshold) or self._cut_message(query)

    def _most_similar(self, query: str, words: frozenset[str], threshold: float) -> Near | None:
        """-> the entry of the nearest message, if it is near enough and no other entry's is about as near."""
        from rapidfuzz import fuzz  # here, as few logs need it and it takes longer to load than most of them to read

        best: dict[str, tuple[float, int, _Message]] = {}
        for message in self._candidates(words):
            if len(query) < min(_LEAST_COVERED * len(message.text), _LONG_ENOUGH):
                continue
            similarity = fuzz.partial_ratio(query, message.text, score_cutoff=threshold - AHEAD)
            found = similarity, len(words & message.words), message  # Of equally near ones that with the same words.
            if similarity and found[:2] > best.get(message.entry.id, (0.0, 0, message))[:2]:
                best[message.entry.id] = found
        ranked = sorted(best.values(), key=lambda found: -found[0])
        if not ranked or ranked[0][0] < threshold or (len(ranked) > 1 and ranked[0][0] - ranked[1][0] < AHEAD):
            return None
        similarity, _, message = ranked[0]
        if any(fuzz.partial_ratio(query, counter) >= similarity for counter in _counterexamples(message.entry)):
            return None
        if _negates(words, message.words) or _negates(message.words, words):
            return None
        return Near(message.entry, similarity, *_difference(query, message.text), is_same=_is_cut(query, message.text))

    def _cut_message(self, query: str) -> Near | None:
        """-> the entry of which alone a message holds `query`: the rest was cut off.

        Words that end where the piece ends make it no piece unless it is long: short messages stand inside others.
        """
        if len(query) < _SHORTEST_PIECE or " " not in query:
            return None
        if query not in self._all_texts:
            return None
        holding = [message for message in self._messages if query in message.text]
        if len({message.entry.id for message in holding}) != 1:
            return None
        message = min(holding, key=lambda message: len(message.text))
        if any(query in counter for counter in _counterexamples(message.entry)):
            return None
        cut = _is_cut(query, message.text)
        if len(query) < SHORTEST and not cut:
            return None
        return Near(message.entry, 100.0, *_difference(query, message.text), is_same=cut)

    def _shown(self, text: str) -> Pattern | None:
        """-> the sign that the tidied text shows, the longest one."""
        found = (self._patterns.all[index] for index in self._patterns.found(text, _ANYWHERE))
        own = [each for each in found if not (each.group or each.sign.weak or each.entry.catch_all)]
        lower = text.lower()
        return max(own, key=lambda pattern: (not pattern.sign.broad, pattern.weight(lower)), default=None)

    def _candidates(self, words: frozenset[str]) -> list[_Message]:
        """-> the messages that share the most words, rare ones counting more."""
        shared: dict[int, float] = defaultdict(float)
        for word in words:
            weight, holders = self._holders.get(word, (0.0, ()))
            for number in holders:
                shared[number] += weight
        ranked = (self._messages[number] for number in sorted(shared, key=shared.__getitem__, reverse=True))
        return list(islice((each for each in ranked if len(words & each.words) >= _FEWEST_WORDS), _MOST_COMPARED))

    @cached_property
    def _messages(self) -> list[_Message]:
        entries = {pattern.entry.id: pattern.entry for pattern in self._patterns.all}
        sources = (Path(__file__), Path(masking.__file__), Path(patterns.__file__))
        texts = self._patterns.cached("messages", sources, self._texts)
        messages = (_Message(entries[name], text, frozenset(_WORD.findall(text))) for name, text in texts)
        return [message for message in messages if len(message.words) >= _FEWEST_WORDS]

    def _texts(self) -> list[list[str]]:
        """-> [entry, message] for the texts of signs and the examples of all entries."""
        texts: dict[tuple[str, str], None] = {}
        for pattern in self._patterns.all:
            if pattern.sign.text and not (pattern.sign.weak or pattern.group or pattern.entry.catch_all):
                texts[comparable(pattern.sign.text), pattern.entry.id] = None
        for entry in {pattern.entry.id: pattern.entry for pattern in self._patterns.all}.values():
            if not entry.catch_all:
                for example in entry.match_examples:
                    texts[comparable(self._own_line(entry, example)), entry.id] = None
        return [[name, text] for text, name in texts if len(text) >= SHORTEST]

    @cached_property
    def _all_texts(self) -> str:
        """All messages in one text, a line each: most pieces are in none of them."""
        return "\n".join(message.text for message in self._messages)

    @cached_property
    def _holders(self) -> dict[str, tuple[float, list[int]]]:
        """Of each word its weight, and the messages that hold it."""
        holders: dict[str, list[int]] = defaultdict(list)
        for number, message in enumerate(self._messages):
            for word in message.words:
                holders[word].append(number)
        return {word: (log(len(self._messages) / len(those)), those) for word, those in holders.items()}

    def _own_line(self, entry: Entry, example: str) -> str:
        """-> the line of an example that shows the entry by itself, else the last one."""
        lines = [line for line in example.strip().split("\n") if line.strip()]
        for line in lines if len(lines) > 1 else ():
            shown = (self._patterns.all[index] for index in self._patterns.found(line, _ANYWHERE))
            if any(pattern.entry is entry and not pattern.group and not pattern.sign.weak for pattern in shown):
                return line
        return lines[-1]


def _whole_words(text: str, start: int, end: int) -> str:
    """-> a part of a text, to the ends of the words that it cuts."""
    behind = text.find(" ", end)
    return text[text.rfind(" ", 0, start + 1) + 1 : behind if behind >= 0 else len(text)]


def _is_cut(query: str, message: str) -> bool:
    """-> whether a piece of a message begins or ends inside a word of it."""
    before, found, behind = message.partition(query)
    joints = ([before[-1] + query[0]] if before else []) + ([query[-1] + behind[0]] if behind else [])
    return bool(found) and any(joint.isalnum() for joint in joints)


def _counterexamples(entry: Entry) -> list[str]:
    """-> the messages that are near to the entry's and mean something else."""
    lines = (line for example in entry.no_match_examples for line in example.split("\n"))
    return [text for text in map(comparable, lines) if len(text) >= SHORTEST]


def _negates(words: frozenset[str], others: frozenset[str]) -> bool:
    """-> whether the others negate one of these words: correctable here, uncorrectable there."""
    return any(f"un{word}" in others for word in words - others)


def tidied(text: str) -> str:
    """-> a text without what chats and web pages put into it: line breaks, quote marks, HTML escapes, curly quotes."""
    if "&" in text:
        from html import unescape  # here, as few messages need it and its table of names takes long to load

        text = unescape(text)
    lines = (re.sub(r"^(?:\s*>)+ ?", "", line) for line in text.translate(_QUOTES).split("\n"))
    return " ".join(" ".join(lines).split())


def comparable(text: str) -> str:
    """-> a message in the form in which messages are compared: masked, without its exception's type, one line."""
    return _TYPE.sub("", " ".join(mask(_ASSERTED.sub("", text[: 2 * LONGEST])).split()))[:LONGEST]


def _difference(query: str, message: str) -> tuple[str, str]:
    """-> the words that only the log has, and those that only the entry has, in the part that both cover."""
    from rapidfuzz import fuzz
    from rapidfuzz.distance import Levenshtein

    part = fuzz.partial_ratio_alignment(query, message)
    if part is not None:
        query = _whole_words(query, part.src_start, part.src_end)
        message = _whole_words(message, part.dest_start, part.dest_end)
    log_words, words = query.split(), message.split()
    changes = [step for step in Levenshtein.opcodes(log_words, words) if step.tag != "equal"]
    logged = " … ".join(" ".join(log_words[step.src_start : step.src_end]) or "–" for step in changes)
    expected = " … ".join(" ".join(words[step.dest_start : step.dest_end]) or "–" for step in changes)
    return logged[:_LONGEST_DIFFERENCE], expected[:_LONGEST_DIFFERENCE]
