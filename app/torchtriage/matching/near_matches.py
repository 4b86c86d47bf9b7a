"""Near matches: finds the entry whose message a text is, apart from line wrapping, quotes, escapes, typos or a missing
part."""

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

NEAR_ENOUGH = 92.0  # similarity from 0 to 100; bench/near_matches.py measures other values
AHEAD = 3.0  # the best entry must be this much more similar than the next one
MIN_LENGTH = 30  # characters; shorter messages are similar to too many others
MAX_LENGTH = 600  # characters of a message that are compared
_MIN_COVERED_SHARE = 0.6  # share of the entry's message; a shorter piece may belong to another message
_IDENTIFYING_LENGTH = 100  # characters; a piece this long identifies its message, however much was cut off
_MIN_PIECE_LENGTH = 14  # characters of a message that was cut inside a word
_MIN_WORDS = 4  # words that both messages contain
_MAX_COMPARED = 12  # the messages that share the most words with the one in the log
_MAX_DIFFERENCE_LENGTH = 60  # characters of a difference that are shown
_TYPE = lazy_regex(r"^(?:\[[\w-]+\]: ?)*(?:\w+\.)*\w*(?:Error|Exception|Interrupt)\s?: ?")
# Text of every internal assertion; it does not make two of them similar.
_ASSERTED = lazy_regex(r" ?INTERNAL ASSERT FAILED at [^\n]{0,300}(?:please report a bug to PyTorch\.?)?")
_QUOTES = str.maketrans("“”‘’«»\u00a0", '""\'\'"" ')
_WORD = lazy_regex(r"[^\W\d_]{3,}")
_ANYWHERE = frozenset({"any", "exception", "line"})


@dataclass(frozen=True, slots=True)
class Near:
    """An entry whose message is similar to one in the log. `similarity` is from 0 to 100. `log` and `expected` are the
    words in which they differ, empty if only line breaks, quotes and escapes do. `broad` is true if only a broad sign
    of the entry matches then. `is_same` is true if it is certainly the entry's message: a sign matches after the text
    is tidied up, or the log was cut inside a word of the message."""

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


class NearMatcher:
    """Compares a message that matches no sign with the messages of all entries. These are read at the first use."""

    def __init__(self, patterns: Patterns) -> None:
        self._patterns = patterns
        # One run asks several times, and different runs have the same messages.
        self._compared = lru_cache(maxsize=1024)(self._compare)

    def nearest(self, text: str, threshold: float = NEAR_ENOUGH, kind: str = "") -> Near | None:
        """Returns the entry whose message is most similar to `text`, if the similarity is at least `threshold`, else
        None. `kind` is the type of the exception with this message."""
        plain = undo_formatting(text)
        # A chat breaks lines between words, a terminal at its right edge.
        for joined in (plain, undo_formatting(text.replace("\n", ""))) if plain != text else ():
            if shown := self._shown(f"{kind}: {joined}" if kind else joined):
                return Near(shown.entry, 100.0, broad=shown.sign.broad, is_same=True)
        return self._compared(comparison_form(plain), threshold)

    def _compare(self, query: str, threshold: float) -> Near | None:
        words = frozenset(_WORD.findall(query))
        if len(query) < MIN_LENGTH or len(words) < _MIN_WORDS:
            return self._cut_message(query)
        return self._most_similar(query, words, threshold) or self._cut_message(query)

    def _most_similar(self, query: str, words: frozenset[str], threshold: float) -> Near | None:
        """Returns the entry of the most similar message, if it is similar enough and no other entry's message is about
        as similar."""
        # imported here because few logs need it, and loading it takes longer than reading most logs
        from rapidfuzz import fuzz

        best: dict[str, tuple[float, int, _Message]] = {}
        for message in self._candidates(words):
            if len(query) < min(_MIN_COVERED_SHARE * len(message.text), _IDENTIFYING_LENGTH):
                continue
            similarity = fuzz.partial_ratio(query, message.text, score_cutoff=threshold - AHEAD)
            # of equally similar messages, the one that shares more words
            found = similarity, len(words & message.words), message
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
        """Returns the entry with a message that contains `query`, if it is the only one. Then the rest was cut off.

        If the piece ends at the end of a word, it must be long, because other messages may contain a short message.
        """
        if len(query) < _MIN_PIECE_LENGTH or " " not in query:
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
        if len(query) < MIN_LENGTH and not cut:
            return None
        return Near(message.entry, 100.0, *_difference(query, message.text), is_same=cut)

    def _shown(self, text: str) -> Pattern | None:
        """Returns the sign that matches the tidied text; if there are several, the most specific one."""
        found = (self._patterns.all[index] for index in self._patterns.found(text, _ANYWHERE))
        own = [each for each in found if not (each.group or each.sign.weak or each.entry.catch_all)]
        lower = text.lower()
        return max(own, key=lambda pattern: (not pattern.sign.broad, pattern.weight(lower)), default=None)

    def _candidates(self, words: frozenset[str]) -> list[_Message]:
        """Returns the messages that share the most words with the text. Rare words count more."""
        shared: dict[int, float] = defaultdict(float)
        for word in words:
            weight, holders = self._messages_by_word.get(word, (0.0, ()))
            for number in holders:
                shared[number] += weight
        ranked = (self._messages[number] for number in sorted(shared, key=shared.__getitem__, reverse=True))
        return list(islice((each for each in ranked if len(words & each.words) >= _MIN_WORDS), _MAX_COMPARED))

    @cached_property
    def _messages(self) -> list[_Message]:
        entries = {pattern.entry.id: pattern.entry for pattern in self._patterns.all}
        sources = (Path(__file__), Path(masking.__file__), Path(patterns.__file__))
        texts = self._patterns.cached("messages", sources, self._texts)
        messages = (_Message(entries[name], text, frozenset(_WORD.findall(text))) for name, text in texts)
        return [message for message in messages if len(message.words) >= _MIN_WORDS]

    def _texts(self) -> list[list[str]]:
        """Returns [entry, message] for the texts of signs and the examples of all entries."""
        texts: dict[tuple[str, str], None] = {}
        for pattern in self._patterns.all:
            if pattern.sign.text and not (pattern.sign.weak or pattern.group or pattern.entry.catch_all):
                texts[comparison_form(pattern.sign.text), pattern.entry.id] = None
        for entry in {pattern.entry.id: pattern.entry for pattern in self._patterns.all}.values():
            if not entry.catch_all:
                for example in entry.match_examples:
                    texts[comparison_form(self._own_line(entry, example)), entry.id] = None
        return [[name, text] for text, name in texts if len(text) >= MIN_LENGTH]

    @cached_property
    def _all_texts(self) -> str:
        """All messages in one text, one per line. One search in it shows that most pieces are in no message."""
        return "\n".join(message.text for message in self._messages)

    @cached_property
    def _messages_by_word(self) -> dict[str, tuple[float, list[int]]]:
        """Maps each word to its weight and the indexes of the messages that contain it."""
        holders: dict[str, list[int]] = defaultdict(list)
        for number, message in enumerate(self._messages):
            for word in message.words:
                holders[word].append(number)
        return {word: (log(len(self._messages) / len(those)), those) for word, those in holders.items()}

    def _own_line(self, entry: Entry, example: str) -> str:
        """Returns the line of an example that matches the entry on its own, or else the last line."""
        lines = [line for line in example.strip().split("\n") if line.strip()]
        for line in lines if len(lines) > 1 else ():
            shown = (self._patterns.all[index] for index in self._patterns.found(line, _ANYWHERE))
            if any(pattern.entry is entry and not pattern.group and not pattern.sign.weak for pattern in shown):
                return line
        return lines[-1]


def _whole_words(text: str, start: int, end: int) -> str:
    """Returns a part of a text, extended to whole words."""
    behind = text.find(" ", end)
    return text[text.rfind(" ", 0, start + 1) + 1 : behind if behind >= 0 else len(text)]


def _is_cut(query: str, message: str) -> bool:
    """Returns whether a piece of a message begins or ends inside a word."""
    before, found, behind = message.partition(query)
    joints = ([before[-1] + query[0]] if before else []) + ([query[-1] + behind[0]] if behind else [])
    return bool(found) and any(joint.isalnum() for joint in joints)


def _counterexamples(entry: Entry) -> list[str]:
    """Returns the messages of the entry's near misses."""
    lines = (line for example in entry.no_match_examples for line in example.split("\n"))
    return [text for text in map(comparison_form, lines) if len(text) >= MIN_LENGTH]


def _negates(words: frozenset[str], others: frozenset[str]) -> bool:
    """Returns whether `others` has a word of `words` with the prefix "un", such as uncorrectable for correctable."""
    return any(f"un{word}" in others for word in words - others)


def undo_formatting(text: str) -> str:
    """Returns a text without the changes that chats and web pages make: line breaks, quote marks, HTML escapes, curly
    quotes."""
    if "&" in text:
        # imported here because few messages need it and its table of names takes long to load
        from html import unescape

        text = unescape(text)
    lines = (re.sub(r"^(?:\s*>)+ ?", "", line) for line in text.translate(_QUOTES).split("\n"))
    return " ".join(" ".join(lines).split())


def comparison_form(text: str) -> str:
    """Returns a message in the form in which messages are compared: masked, on one line, without the exception's
    type."""
    return _TYPE.sub("", " ".join(mask(_ASSERTED.sub("", text[: 2 * MAX_LENGTH])).split()))[:MAX_LENGTH]


def _difference(query: str, message: str) -> tuple[str, str]:
    """Returns the words that only the log has, and those that only the entry has, in the part that both contain."""
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
    return logged[:_MAX_DIFFERENCE_LENGTH], expected[:_MAX_DIFFERENCE_LENGTH]
